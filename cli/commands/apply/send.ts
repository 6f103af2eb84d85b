/**
 * Carries a plan out: all of it in one call of the API, which is done whole or not at all. A dry run is the same call,
 * which the control plane tries and does not do: it refuses what it would refuse.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import type { Api } from '../../command/api.ts'
import { ApiRefusal } from '../../command/report.ts'
import type { Call } from './kind.ts'
import { type Label, pendingKey, type Step } from './plan.ts'

export interface Prepared {
  readonly step: Step
  readonly calls: readonly Call[]
}

/** What the control plane takes at once (src/api/together). */
const mostCalls = 500

/** Throws the API's refusal with the record that it is about; then nothing has changed. */
export async function send(
  api: Api,
  prepared: readonly Prepared[],
  { labels, dryRun }: { labels: readonly Label[]; dryRun: boolean },
): Promise<void> {
  const ordered = inOrder(prepared)
  if (ordered.length === 0 && labels.length === 0) return
  if (ordered.length > mostCalls) {
    const message = `That is ${ordered.length} calls, and ${mostCalls} at most are done together: apply the files one after another, as "export --only LIST" writes them`
    throw new Failure('usage', { message })
  }
  const calls = ordered.map(({ step, call: { version, ...call }, makes }) => ({
    ...call,
    if_match: version,
    creates: makes ? pendingKey(step.kind, step.name) : undefined,
  }))
  try {
    await api.json(
      { method: 'POST', path: '/v1/together', body: { calls, labels, dry_run: dryRun } },
      z.looseObject({}),
    )
  } catch (thrown) {
    throw thrown instanceof ApiRefusal ? withRecord(thrown, ordered) : thrown
  }
}

/** `calls.3.body.base_url` says the record and the field. */
function withRecord({ status, code, message, param, requestId }: ApiRefusal, ordered: readonly Ordered[]): ApiRefusal {
  const [, index, field] = /^calls\.(\d+)(?:\.body\.(.+))?$/.exec(param ?? '') ?? []
  const step = index === undefined ? undefined : ordered[Number(index)]?.step
  const which = step === undefined ? message : `${step.kind.one} "${step.name}": ${message}`
  const located = step?.refused(field ?? null, message) ?? which
  const said = { status, code, message: `${located}. Nothing was changed`, requestId }
  return new ApiRefusal({ ...said, param: step === undefined ? param : (field ?? null) })
}

interface Ordered {
  readonly step: Step
  readonly call: Call
  /** Whether it makes the record, so that its answer has the id. */
  readonly makes: boolean
}

/** Deletions come last, after what refers to records of the same kind. */
function inOrder(prepared: readonly Prepared[]): Ordered[] {
  const callsOf = (isDeletion: boolean) =>
    prepared
      .filter(({ step }) => (step.action === 'delete') === isDeletion)
      .flatMap(({ step, calls }) =>
        calls.map((call, index) => ({ step, call, makes: step.action === 'create' && index === 0 })),
      )
  const later = prepared.flatMap(({ step }) => step.later.map((call) => ({ step, call, makes: false })))
  return [...callsOf(false), ...later, ...callsOf(true)]
}
