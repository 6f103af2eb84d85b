/** A log line for a person at a terminal, in plain text instead of JSON. */

const longestValue = 80

/** `22:08:17 warn gateway: A request failed (error: …)`; long values are cut. */
export function terminalLine(line: string): string {
  const { time, level, process: from, msg, ...fields }: Record<string, unknown> = JSON.parse(line)
  const said = Object.entries(fields).map(([name, value]) => `${name}: ${short(value)}`)
  const details = said.length === 0 ? '' : ` (${said.join(', ')})`
  return `${String(time).slice(11, 19)} ${level} ${from}: ${msg}${details}\n`
}

function short(value: unknown): string {
  const text = JSON.stringify(value) ?? ''
  return text.length > longestValue ? `${text.slice(0, longestValue)}…` : text
}
