/**
 * A screen that a command redraws: the terminal's alternate screen, without a cursor, keys unshown. Closing it gives
 * back what stood there before, and so does the end of the process however it comes, except by SIGKILL.
 */

export interface LiveScreen {
  /** Shows these lines from the top on; what does not fit is cut. */
  draw(lines: readonly string[]): void
  /** Resolves when a person ends it: q, Escape, Ctrl-C, or a signal to the process. */
  readonly ended: Promise<void>
  close(): void
}

/** DEC private modes 1049 (alternate screen) and 25 (cursor), as xterm and its kind have them. */
const enter = '\u001b[?1049h\u001b[?25l'
const leave = '\u001b[?25h\u001b[?1049l'
/** To the top; the rest of the line; the rest of the screen (ECMA-48: CUP, EL, ED). */
const [top, restOfLine, restOfScreen] = ['\u001b[H', '\u001b[K', '\u001b[J']

const endKeys: ReadonlySet<string> = new Set(['q', 'Q', '\u001b', '\u0003', '\u0004'])

export function openScreen(): LiveScreen {
  const { stdin, stdout } = process
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const hear = (keys: Buffer) => {
    if (endKeys.has(keys.toString())) end()
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const onSignal = () => end()
  let isOpen = true
  const close = () => {
    if (!isOpen) return
    isOpen = false
    stdout.write(leave)
    stdin.setRawMode(false)
    stdin.off('data', hear).pause()
    process.off('exit', close)
    for (const signal of signals) process.off(signal, onSignal)
  }
  stdout.write(enter)
  stdin.setRawMode(true)
  stdin.on('data', hear).resume()
  process.on('exit', close)
  for (const signal of signals) process.on(signal, onSignal)
  return {
    draw(lines) {
      const [height, width] = [stdout.rows || 24, stdout.columns || 80]
      const cut = lines.slice(0, height).map((line) => Bun.sliceAnsi(line, 0, width) + restOfLine)
      stdout.write(top + cut.join('\r\n') + restOfScreen)
    },
    ended,
    close,
  }
}
