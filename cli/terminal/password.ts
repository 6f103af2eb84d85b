import { Failure } from '../../src/failure.ts'
import type { Input } from './input.ts'
import type { Terminal } from './terminal.ts'

/** Asks for a new password, twice where a person types. */
export async function askPassword(terminal: Terminal, input: Input): Promise<string> {
  if (!input.interactive) return await input.hiddenLine()
  terminal.note('New password, 12 characters or more (it is not shown):')
  const password = await input.hiddenLine()
  terminal.note('Once more:')
  if ((await input.hiddenLine()) === password) return password
  throw new Failure('usage', { message: 'The two passwords differ' })
}
