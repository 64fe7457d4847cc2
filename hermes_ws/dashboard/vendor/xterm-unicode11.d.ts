// What the page uses of @xterm/addon-unicode11 0.9.0: how wide newer characters are.

export class Unicode11Addon {
  activate(terminal: object): void;
  dispose(): void;
}
