import type { Terminal } from '../terminal/terminal.ts'

export interface RecordingTerminal extends Terminal {
  written(): string
  noted(): string
}

/** A terminal for tests, which remembers what was said. */
export function recordingTerminal(given: Partial<Terminal> = {}): RecordingTerminal {
  const decoder = new TextDecoder()
  let out = ''
  let notes = ''
  return {
    name: 'gatehouse',
    environment: {},
    interactive: false,
    async write(data) {
      out += typeof data === 'string' ? data : decoder.decode(data, { stream: true })
    },
    note(line) {
      notes += `${line}\n`
    },
    ...given,
    written: () => out,
    noted: () => notes,
  }
}
