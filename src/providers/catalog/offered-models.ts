/**
 * The models that providers offer, asked of the providers themselves with the operator's credential and kept for some
 * minutes. It serves model discovery only: no request to a model waits for it or depends on it.
 *
 * - A list is asked for once at a time. An old list is used while a new one is on its way.
 * - A list is bounded in size, in time and in the number of its models.
 * - After a failure the provider is not asked again for half a minute, and the former list stays.
 */

import { type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { heldBody } from '../held-body.ts'
import { isModelName } from '../model-name.ts'
import type { Fetch, OfferedModel, Provider, ProviderKind } from '../provider.ts'

const freshMilliseconds = 5 * 60_000
const afterFailureMilliseconds = 30_000
const timeoutMilliseconds = 3000
const longestList = 4 * 1024 * 1024
const mostModels = 2000

interface Kept {
  /** Null if the provider has never listed its models. */
  models: ReadonlyMap<string, OfferedModel> | null
  /** The monotonic instant from which it is asked again. */
  until: number
  asking: Promise<void> | null
}

export class OfferedModels {
  readonly #options: { fetch: Fetch; clock: Clock; log: Log }
  /** A changed provider is a new object, so its former list is forgotten with its former credential. */
  readonly #kept = new WeakMap<Provider, Kept>()

  constructor(options: { fetch: Fetch; clock: Clock; log: Log }) {
    this.#options = options
  }

  /**
   * The offered models by id; null if the kind has no list or the provider has not answered with one. Waits only for
   * the first list of a provider, and at most three seconds.
   */
  async of(provider: Provider, kind: ProviderKind): Promise<ReadonlyMap<string, OfferedModel> | null> {
    if (kind.offered === undefined) return null
    let kept = this.#kept.get(provider)
    if (kept === undefined) {
      kept = { models: null, until: Number.NEGATIVE_INFINITY, asking: null }
      this.#kept.set(provider, kept)
    }
    if (kept.asking === null && this.#options.clock.monotonic() >= kept.until) {
      kept.asking = this.#refresh(kept, provider, kind, kind.offered)
    }
    if (kept.models === null) await kept.asking
    return kept.models
  }

  async #refresh(kept: Kept, provider: Provider, kind: ProviderKind, offered: Offered): Promise<void> {
    const { clock, log } = this.#options
    try {
      kept.models = await this.#ask(provider, kind, offered)
      kept.until = clock.monotonic() + freshMilliseconds
    } catch (thrown) {
      kept.until = clock.monotonic() + afterFailureMilliseconds
      // The message of an error never holds the credential, which is sent in a header.
      log.warn({ provider: provider.name, error: String(thrown) }, 'A provider did not list its models')
    } finally {
      kept.asking = null
    }
  }

  async #ask(provider: Provider, kind: ProviderKind, offered: Offered): Promise<ReadonlyMap<string, OfferedModel>> {
    const { url, headers } = offered.request(provider)
    const answer = await this.#options.fetch(url, {
      headers: { accept: 'application/json', ...headers },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMilliseconds),
    })
    const { text, answer: held } = await heldBody(answer, longestList)
    if (text === null) await held.body?.cancel()
    if (!answer.ok) throw new Error(`It answered with the status ${answer.status}`)
    const body = text === null ? null : parseModelList(text)
    if (body === null) throw new Error('Its list is too long, or no JSON object')
    return byId(kind, offered.read(body).slice(0, mostModels))
  }
}

/** Some services answer with the bare list, which stands in `data` at others. */
export const parseModelList = (text: string): JsonObject | null =>
  parseObject(text.trimStart().startsWith('[') ? `{"data":${text}}` : text)

type Offered = NonNullable<ProviderKind['offered']>

/** Under the names that filters and policies read. A name that callers could not use is left out. */
function byId(kind: ProviderKind, models: readonly OfferedModel[]): ReadonlyMap<string, OfferedModel> {
  const found = new Map<string, OfferedModel>()
  for (const model of models) {
    const id = offeredId(kind, model.name)
    if (id !== null) found.set(id, { ...model, createdAt: knownInstant(model.createdAt) })
  }
  return found
}

/** Null for what is no instant of a date. */
const knownInstant = (instant: number | null): number | null =>
  instant === null || Number.isNaN(new Date(instant).getTime()) ? null : instant

/** The id of a model that the catalog does not list; null for a name that the kind does not accept. */
export function offeredId(kind: ProviderKind, name: string): string | null {
  if (!isModelName(name) || kind.takesName?.(name) === false) return null
  return kind.modelNames === undefined ? name : (kind.modelNames(name)?.id ?? null)
}
