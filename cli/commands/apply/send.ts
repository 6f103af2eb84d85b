/** Carries a plan out over the API. */
import type { Api } from '../../command/api.ts'
import { ApiRefusal } from '../../command/report.ts'
import { type Call, entrySchema } from './kind.ts'
import { pendingKey, type Step, withIds } from './plan.ts'

export interface Prepared {
  readonly step: Step
  readonly calls: readonly Call[]
}

/** Makes the calls in their order. Throws the API's refusal with the record that it is about. */
export async function send(api: Api, prepared: readonly Prepared[]): Promise<void> {
  const ids = new Map<string, string>()
  for (const { step, call, makes } of inOrder(prepared)) {
    const answer = await one(api, step, withIds(call, ids))
    if (makes) ids.set(pendingKey(step.kind, step.name), step.kind.idOf(answer))
  }
}

interface Ordered {
  readonly step: Step
  readonly call: Call
  /** Whether it makes the record, so that its answer has the id. */
  readonly makes: boolean
}

/** Deletions come last, after what refers to records of the same kind. */
export function inOrder(prepared: readonly Prepared[]): Ordered[] {
  const callsOf = (isDeletion: boolean) =>
    prepared
      .filter(({ step }) => (step.action === 'delete') === isDeletion)
      .flatMap(({ step, calls }) =>
        calls.map((call, index) => ({ step, call, makes: step.action === 'create' && index === 0 })),
      )
  const later = prepared.flatMap(({ step }) => step.later.map((call) => ({ step, call, makes: false })))
  return [...callsOf(false), ...later, ...callsOf(true)]
}

async function one(api: Api, { kind, name }: Step, { method, path, body, version }: Call) {
  const headers = version === undefined ? {} : { headers: { 'if-match': `"${version}"` } }
  try {
    return await api.json({ method, path, body, ...headers }, entrySchema)
  } catch (thrown) {
    if (!(thrown instanceof ApiRefusal)) throw thrown
    const { status, code, message, param, requestId } = thrown
    throw new ApiRefusal({ status, code, message: `${kind.one} "${name}": ${message}`, param, requestId })
  }
}
