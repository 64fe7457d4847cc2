// What the page uses of @xterm/headless 6.0.0; the library itself is beside this file, as it was published.

export interface Disposable {
  dispose(): void;
}

export interface Cell {
  getWidth(): number;
  getChars(): string;
  getFgColor(): number;
  getBgColor(): number;
  isFgRGB(): boolean;
  isBgRGB(): boolean;
  isFgPalette(): boolean;
  isBgPalette(): boolean;
  isBold(): number;
  isItalic(): number;
  isDim(): number;
  isUnderline(): number;
  isInverse(): number;
  isInvisible(): number;
  isStrikethrough(): number;
}

export interface Line {
  readonly isWrapped: boolean;
  readonly length: number;
  getCell(column: number, cell?: Cell): Cell | undefined;
  translateToString(trimRight?: boolean): string;
}

export interface Buffer {
  readonly type: "normal" | "alternate";
  readonly cursorX: number;
  readonly cursorY: number;
  readonly viewportY: number;
  readonly baseY: number;
  readonly length: number;
  getLine(row: number): Line | undefined;
  getNullCell(): Cell;
}

export class Terminal {
  constructor(options: { cols: number; rows: number; scrollback: number; allowProposedApi: boolean });
  readonly rows: number;
  readonly cols: number;
  readonly buffer: { readonly active: Buffer };
  readonly modes: {
    readonly applicationCursorKeysMode: boolean;
    readonly bracketedPasteMode: boolean;
    readonly mouseTrackingMode: string;
    readonly synchronizedOutputMode: boolean;
  };
  readonly parser: {
    registerCsiHandler(id: { prefix?: string; final: string }, take: (params: (number | number[])[]) => boolean): Disposable;
  };
  readonly unicode: { activeVersion: string };
  onData(listener: (data: string) => void): Disposable;
  loadAddon(addon: object): void;
  write(data: string, done?: () => void): void;
  resize(columns: number, rows: number): void;
  scrollLines(amount: number): void;
  scrollToBottom(): void;
  reset(): void;
  dispose(): void;
}
