/** Secrets that a command line names by the variables which hold them: others can read a command line. */
import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { linesOf } from './resource.ts'

export function fromEnvironment(variable: string, { environment }: Terminal): string {
  const value = environment[variable]
  if (value !== undefined && value !== '') return value
  throw new Failure('usage', { message: `The environment has no variable ${variable}` })
}

/** `NAME=VARIABLE` lines as a record of values; `example` shows the form where it is another. Throws `usage`. */
export function pairsFromEnvironment(
  lines: string | undefined,
  { flag, example }: { flag: string; example: string },
  terminal: Terminal,
): Record<string, string> | undefined {
  const pairs = linesOf(lines)?.map((line) => {
    const [, name, variable] = /^([^=]+)=([A-Za-z_][A-Za-z0-9_]*)$/.exec(line) ?? []
    if (name === undefined || variable === undefined) {
      throw new Failure('usage', { message: `${flag} takes a name and a variable: ${example}` })
    }
    return [name, fromEnvironment(variable, terminal)] as const
  })
  return pairs && Object.fromEntries(pairs)
}
