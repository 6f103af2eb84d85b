/**
 * Every case of failure with a whole fleet, and one table of what was counted after each:
 *
 *   bun test/fleet/failure-table.ts --sidecars 20 --kill-seconds 60
 *
 * `--case NAME`, which may be repeated, runs only those. Exit code 1 where a case found anything or could not be run
 * to its end; what this machine lacks the means for is skipped. Disks are filled in a tmpfs of their own: that needs
 * root.
 */
import { parseArgs } from 'node:util'
import { type FailureCase, failureCases, Skipped } from './failure-cases.ts'
import { FailureTrial } from './failure-trial.ts'
import { type Counted, sound } from './invariants.ts'

const { values } = parseArgs({
  options: {
    sidecars: { type: 'string', default: '20' },
    'kill-seconds': { type: 'string', default: '60' },
    case: { type: 'string', multiple: true, default: Object.keys(failureCases) },
  },
})

/** Then what the fleet is in is no state to go on from. */
const maxSeconds = 300

interface Outcome {
  seconds: number
  counted: Counted | null
  /** Empty where everything held. */
  error: string
}

async function runCase(trial: FailureTrial, fail: FailureCase): Promise<Outcome> {
  const began = performance.now()
  const outcome = (counted: Counted | null, error: string): Outcome => ({
    ...{ seconds: Math.round((performance.now() - began) / 1000), counted, error },
  })
  try {
    const counted = await trial.run(fail)
    const holds = Bun.deepMatch(sound, counted) && counted.accepted > 0
    return outcome(counted, holds ? '' : 'does not hold')
  } catch (error) {
    if (error instanceof Skipped) return outcome(null, `skipped: ${error.message}`)
    // Whatever it did to the servers, the next case is one of its own.
    await trial.fleet.primary.state.restart()
    await trial.fleet.primary.ledger.restart()
    return outcome(null, String(error).split('\n')[0] ?? '')
  }
}

const row = ({ seconds, counted, error }: Outcome) => ({
  seconds,
  ...(counted !== null && {
    answered: counted.answers - counted.unanswered,
    accepted: counted.accepted,
    'no answer': counted.unanswered,
    'after effective_by': counted.acceptedTooLate,
    'limit passed by': counted.limitPassedBy,
    'events missing': counted.eventsMissing,
    'events twice': counted.eventsTwice,
    'replicas unequal': counted.replicasUnequal,
    'chains verify': counted.verifyExitCode === 0 ? 'yes' : 'no',
  }),
  ...(error !== '' && { error: error.slice(0, 60) }),
})

const cases = values.case.map((name): [string, FailureCase] => {
  const found = new Map<string, FailureCase>(Object.entries(failureCases)).get(name)
  if (found === undefined) throw new Error(`There is no case "${name}", only: ${Object.keys(failureCases).join('; ')}`)
  return [name, found]
})
const outcomes: Record<string, Outcome> = {}
const overdue: Outcome = { seconds: maxSeconds, counted: null, error: 'not over in time' }

const trial = await FailureTrial.start({
  sidecars: Number(values.sidecars),
  killSeconds: Number(values['kill-seconds']),
})
for (const [name, fail] of cases) {
  const outcome = await Promise.race([runCase(trial, fail), Bun.sleep(maxSeconds * 1000).then(() => overdue)])
  outcomes[name] = outcome
  console.error(`${name}: ${outcome.seconds} s ${outcome.error}`)
  if (outcome === overdue) break
}
console.table(Object.fromEntries(Object.entries(outcomes).map(([name, outcome]) => [name, row(outcome)])))
const ended = Object.values(outcomes)
if (!ended.includes(overdue)) await trial[Symbol.asyncDispose]()
// What is still running ends with this process.
process.exit(ended.every(({ error }) => error === '' || error.startsWith('skipped')) ? 0 : 1)
