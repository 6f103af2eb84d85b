/** Turns a thrown error into the lines on stderr and the exit code: 1 failed, 2 usage (cli/README.md). */
import { asFailure, type Failure, type FailureCode } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** An API's answer with an error status. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal'
  readonly status: number
  readonly code: string
  /** The field that is at fault. */
  readonly param: string | null
  readonly requestId: string | null

  constructor(refusal: {
    status: number
    code: string
    message: string
    param?: string | null
    requestId: string | null
  }) {
    super(refusal.message)
    this.status = refusal.status
    this.code = refusal.code
    this.param = refusal.param ?? null
    this.requestId = refusal.requestId
  }
}

/** What a person does next, by code; codes of an API may be any text. */
const advice: Readonly<Record<string, string>> = {
  missing_api_key: 'Sign in with auth login, or set SERVICE_API_TOKEN to an API token of this installation',
  invalid_api_token: 'Set SERVICE_API_TOKEN to a valid API token of this installation',
  'tokens.expired': 'Make a new token and set SERVICE_API_TOKEN to it',
  token_already_rotated: 'Look at the token: rotated_to_id names the one that replaced it',
  version_mismatch: 'Somebody else changed the record: look at it again and repeat the command',
  permission_denied: 'Use a token whose roles hold the permission, for example an administrator token',
  not_found: 'Check the id or name: a list command shows those there are',
  api_unreachable: 'Check that it runs, and that --api-url or SERVICE_API_URL names it',
  gateway_unreachable:
    'Check that it runs, and that --gateway-url names it as this host sees it; --skip-check leaves the request out',
  gateway_check_failed: 'Nothing was written; --skip-check leaves the request out',
  dependency_unavailable: 'Wait a moment and retry',
  address_in_use: 'Stop the other process or choose another address; port 0 picks a free one',
  data_damaged: 'doctor --data DIR names what is wrong there, and what to do',
  data_unwritable: 'Choose another directory with --data, or give this user the right to write there',
  output_unwritable: 'Make room there or write elsewhere, and run the command again',
  process_failed: 'The log lines above have the details; doctor --data DIR checks the data directory',
  already_running: 'Stop it first (kill PROCESS lets running requests finish), or choose another directory with --data',
} satisfies Partial<Record<FailureCode, string>>

const usageCodes: ReadonlySet<string> = new Set<FailureCode>(['usage', 'invalid_parameter', 'unknown_parameter'])

/** Reports to stderr and returns the exit code. `path`: the command that was called. */
export function report(thrown: unknown, terminal: Terminal, path = terminal.name): number {
  if (thrown instanceof ApiRefusal) {
    terminal.note(`error: ${thrown.message}`)
    const where = thrown.param === null ? '' : `, field ${thrown.param}`
    const which = thrown.requestId === null ? '' : `, request ${thrown.requestId}`
    terminal.note(`  code ${thrown.code}, status ${thrown.status}${where}${which}`)
    if (advice[thrown.code]) terminal.note(`  ${advice[thrown.code]}`)
    return 1
  }
  const failure = asFailure(thrown)
  terminal.note(`error: ${failure.code === 'internal' ? causeOf(failure) : failure.message}`)
  if (usageCodes.has(failure.code)) {
    terminal.note(`  ${path} --help shows ${path === terminal.name ? 'the commands' : 'how it is used'}`)
    return 2
  }
  terminal.note(`  code ${failure.code}`)
  if (advice[failure.code]) terminal.note(`  ${advice[failure.code]}`)
  return 1
}

/** A defect is shown whole, since there is no log of it. What the system refuses is none, and names its file. */
function causeOf({ cause, message }: Failure): string {
  if (!(cause instanceof Error)) return message
  return 'syscall' in cause ? cause.message : (cause.stack ?? cause.message)
}
