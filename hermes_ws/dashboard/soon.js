// One deed for many reasons that come together.

export class Soon {
  /** @param {() => unknown} act @param {number} after milliseconds from the first reason on */
  constructor(act, after) {
    this.act = act;
    this.after = after;
    this.timer = 0;
  }

  ask() {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.act();
    }, this.after);
  }

  cancel() {
    clearTimeout(this.timer);
    this.timer = 0;
  }
}
