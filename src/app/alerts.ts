/**
 * Connects alerts with the rest of a control plane, and evaluates and delivers in rounds of their own: neither a slow
 * receiver nor a slow evaluation holds other work up. What alerts need is loaded at the first round, not at a start.
 */
import type { AlertDependencies, Measured } from '../alerts/dependencies.ts'
import { type KeptFinding, readVerifyReport, subjectOf } from '../events/verify/background.ts'
import type { Log } from '../lib/log/log.ts'
import { Rounds } from '../lib/rounds.ts'
import { readReport } from '../operation/doctor-report.ts'
import { sinkLags } from '../sinks/sink-lag.ts'
import type { Parts } from './control-plane-parts.ts'

/** How long a notice waits at most before it is sent, where its channel may be tried. */
const deliveryMilliseconds = 2000

export const alertDependencies = ({ shared, settings, workers, addresses }: Parts): AlertDependencies => ({
  ...shared,
  settings,
  consoleUrl: () => addresses.console,
  sources: {
    targets: () => workers.targets(),
    sinkLag: () => lagOfSinks(shared),
    doctor: () => doctorFindings(shared),
    verify: () => verifyFindings(shared),
  },
})

async function lagOfSinks({ ledger, clock }: Parts['shared']): Promise<Measured[]> {
  const lags = await sinkLags(ledger, clock.now())
  return lags.map(({ name, lagSeconds, lagRecords, failing }) => ({
    subject: name,
    value: lagSeconds,
    about: () =>
      `The sink ${name} has ${lagRecords} records to deliver, the oldest for ${lagSeconds} s${failing ? '; its receiver does not take them' : ''}`,
  }))
}

async function doctorFindings({ ledger }: Parts['shared']): Promise<Measured[] | null> {
  const { examinedAt, findings } = await readReport(ledger)
  if (examinedAt === null) return null
  return findings.map(({ subject, level, what, todo }) => ({
    subject,
    value: level === 'fail' ? 2 : 1,
    about: () => `${what}. ${todo}`,
  }))
}

async function verifyFindings({ ledger }: Parts['shared']): Promise<Measured[] | null> {
  const { examinedAt, findings } = await readVerifyReport(ledger)
  if (examinedAt === null) return null
  return findings.map((each) => ({
    subject: subjectOf(each),
    value: 1,
    about: () => `${each.message}${placeOf(each)}. gatehouse events verify names each.`,
  }))
}

const placeOf = ({ chain, from, to }: KeptFinding): string => {
  const numbers = from === null ? '' : ` ${from}${to === null || to === from ? '' : ` to ${to}`}`
  return chain === null && numbers === '' ? '' : ` (${chain ?? 'the log'}${numbers})`
}

/** `start`, and `stop`, which waits for the rounds that run. */
export function alertRounds(parts: Parts, log: Log) {
  const dependencies = alertDependencies(parts)
  const holder = dependencies.newId()
  const load = () => Promise.all([import('../alerts/evaluate.ts'), import('../alerts/delivery/deliver.ts')])
  let loaded: ReturnType<typeof load> | null = null
  const modules = () => {
    loaded ??= load()
    return loaded
  }
  const intervalMs = parts.settings.alert_interval_seconds * 1000
  const evaluate = async () => {
    const [{ evaluateIfHeld }] = await modules()
    await evaluateIfHeld(dependencies, { holder, leaseMs: leaseRounds * intervalMs })
  }
  const deliver = async () => {
    const [, { deliverNotices }] = await modules()
    await deliverNotices(dependencies, holder)
  }
  const rounds = [
    new Rounds(intervalMs, () => logged(log, 'alerts', evaluate)),
    new Rounds(deliveryMilliseconds, () => logged(log, 'notices of alerts', deliver)),
  ]
  return {
    start: () => {
      for (const each of rounds) each.start()
    },
    stop: () => Promise.all(rounds.map((each) => each.stop())),
  }
}

/** For so many rounds a control plane that ended keeps others from evaluating. */
const leaseRounds = 3

async function logged(log: Log, what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.error({ work: what, error: String(error) }, 'Background work failed and will be tried again')
  }
}
