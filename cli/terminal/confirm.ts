import { Failure } from '../../src/failure.ts'
import type { Terminal } from './terminal.ts'

/**
 * Asks a person whether to go on with what cannot be undone, unless `--yes` says so. `what` is a sentence that says
 * what will happen. Throws `usage` where nobody can be asked, or the answer is not yes.
 */
export async function confirm(yes: boolean | undefined, what: string, terminal: Terminal): Promise<void> {
  if (yes === true) return
  if (terminal.ask === undefined) throw new Failure('usage', { message: `${what}: repeat the command with --yes` })
  const answer = await terminal.ask(`${what}. Go on? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('usage', { message: 'Nothing was changed' })
}

/** Asks too, but goes on where nobody can be asked: for what can be taken back. */
export async function confirmAtTerminal(yes: boolean | undefined, what: string, terminal: Terminal): Promise<void> {
  if (terminal.ask !== undefined) await confirm(yes, what, terminal)
}
