/**
 * The policies that apply to one request, in order.
 *
 * A policy is compiled once for each change of it, and the `PolicySet` is rebuilt for each change of any policy. Each
 * request gets its chain from the set: the policies whose targets match. A chain is found once for each combination
 * of the values that some policy asks about (team, gateway, token, model, family) and then looked up. A policy that
 * does not match is not in the chain and costs nothing.
 *
 * Targets: with empty `targets` a policy applies to everyone. Each given list narrows it: all given lists must match.
 * A policy also applies to a token that names it in `policy_ids`, whatever its `teams`, `gateways` and `tokens` are;
 * its `models` and `families` still hold. Attaching a policy to a token does not take it from others: a policy only
 * for the tokens that name it has `targets: {"tokens": []}`. A policy for a token also applies to its clones and
 * rotations.
 *
 * A policy that cannot be compiled (its kind is unknown to this version) is in its chain as broken: `when_broken`
 * decides every request it applies to.
 */

import type { Verdict } from '../events/event.ts'
import type { Family, PolicyStage } from '../languages/families.ts'
import { someGlobMatches } from '../tokens/governed-token.ts'
import { type Condition, compileWhen, readsResponse } from './conditions/condition.ts'
import type { ModelView } from './conditions/context.ts'
import { policyKinds } from './kinds/index.ts'
import { type CompiledPolicy, capturesEscalated } from './kinds/kind.ts'
import type { StoredPolicy } from './stored-policy.ts'

/** One policy's result at one stage, as events show it (events/README.md). */
export interface PolicyResult {
  policy_id: string
  kind: string
  stage: PolicyStage
  /** `monitor`: recorded and not applied. */
  mode: 'enforce' | 'monitor'
  verdict: Verdict
  reason_code: string
  latency_ms: number
  /** The finding, without the text itself: `messages[0].content`, `EMAIL`. */
  targets: readonly string[]
}

/** The subject that a chain applies to. */
export interface ChainSubject {
  organizationId: string
  gatewayId: string
  tokenId: string
  /** The tokens that it was cloned or rotated from. */
  tokenLineage?: readonly string[]
  teamId: string | null
  policyIds: readonly string[]
  /** Null for a request to no model, such as one for a conversation: then policies for any model apply. */
  model: string | null
  /** Other names of the same model: a policy for any of them applies. */
  modelAliases?: readonly string[]
  family: Family
}

/** A policy of a chain, ready to run. */
export interface ActivePolicy {
  readonly id: string
  readonly kind: string
  readonly version: number
  readonly enforced: boolean
  readonly whenBroken: 'deny' | 'allow'
  /** Null: always. */
  readonly condition: Condition | null
  /** The condition's text: equal texts are equal conditions. */
  readonly when: string | null
  /** Whether its condition needs the answer. */
  readonly awaitsAnswer: boolean
  /** Whether a reviewer of what it escalates sees the text. */
  readonly capturesEscalated: boolean
  /** The error if it could not be compiled. */
  readonly compiled: CompiledPolicy | Error
}

export interface PolicyChain {
  /** The stages of all its policies, whatever their `when` and `mode` are. */
  readonly stages: ReadonlySet<PolicyStage>
  readonly size: number
  /** The policies of a stage, in order. */
  at(stage: PolicyStage): readonly ActivePolicy[]
  /** The enforced policies that keep answers, in order. They decide nothing and belong to no stage. */
  readonly caches: readonly ActivePolicy[]
  /** Whether one of its policies may escalate an answer to a person. */
  readonly escalatesAnswers: boolean
  /**
   * Whether a fallback may use this model: no enforced policy of the chain forbids it, and no policy applies to this
   * model alone, because the request was not evaluated by such a policy.
   */
  allowsModel(model: ModelView): boolean
}

/** All policies that a gateway knows. */
export interface PolicySet {
  chainFor(subject: ChainSubject): PolicyChain
}

const none: readonly ActivePolicy[] = []
const emptyChain: PolicyChain = {
  stages: new Set(),
  size: 0,
  at: () => none,
  caches: none,
  escalatesAnswers: false,
  allowsModel: () => true,
}
export const noPolicies: PolicySet = { chainFor: () => emptyChain }

/** How many chains are cached; beyond that they are computed again. */
const chainsKept = 4096

/** A policy of a set. */
interface Member {
  readonly stored: StoredPolicy
  readonly active: ActivePolicy
}

/** Compiles policies, given in any order. Never throws: a policy that cannot be compiled is broken. */
export const compilePolicySet = (policies: readonly StoredPolicy[]): PolicySet =>
  policySetOf(policies.filter(({ enabled }) => enabled).map(compileMember))

/** Compiles an enabled policy for a set. */
export const compileMember = (stored: StoredPolicy): Member => ({ stored, active: compilePolicy(stored) })

/** The set of these policies, given in any order; compiled parts are kept. */
export function policySetOf(unordered: readonly Member[]): PolicySet {
  if (unordered.length === 0) return noPolicies
  const members = unordered.toSorted(
    ({ stored: one }, { stored: other }) => one.position - other.position || (one.id < other.id ? -1 : 1),
  )
  const keyOf = chainKeys(members)
  const chains = new Map<string, PolicyChain>()
  const set: PolicySet = {
    chainFor(subject) {
      const key = keyOf(subject)
      const known = chains.get(key)
      if (known !== undefined) return known
      const chain = makeChain(
        members.filter(({ stored }) => matches(stored, subject)),
        ({ id, aliases }) => set.chainFor({ ...subject, model: id, modelAliases: aliases }),
      )
      if (chains.size >= chainsKept) chains.clear()
      chains.set(key, chain)
      return chain
    },
  }
  return set
}

/** Compiles one policy for running; an error is kept in it. */
export function compilePolicy(stored: StoredPolicy): ActivePolicy {
  const { id, kind, version, mode, whenBroken, when } = stored
  const frame = {
    ...{ id, kind, version, enforced: mode === 'enforce', whenBroken, when, awaitsAnswer: false },
    capturesEscalated: capturesEscalated(stored.config),
  }
  try {
    const known = policyKinds.get(kind)
    if (known === undefined) throw new Error(`This version knows no policy kind "${kind}"`)
    const condition = when === null ? null : compileWhen(when, stored.stages)
    const awaitsAnswer = when !== null && readsResponse(when)
    return { ...frame, condition, awaitsAnswer, compiled: known.compile(stored.config, { stages: stored.stages }) }
  } catch (error) {
    return { ...frame, condition: null, compiled: error instanceof Error ? error : new Error(String(error)) }
  }
}

/** The cache key of a chain: only the values that some policy asks about, so that few keys cover very many tokens. */
function chainKeys(members: readonly Member[]): (subject: ChainSubject) => string {
  const asks = (name: 'teams' | 'gateways' | 'models') =>
    members.some(({ stored }) => stored.targets[name] !== undefined)
  const [teams, gateways, models] = [asks('teams'), asks('gateways'), asks('models')]
  const named = new Set(members.flatMap(({ stored }) => stored.targets.tokens ?? []))
  return (subject) => {
    let key: string = subject.family
    if (teams) key += `\n${subject.teamId}`
    if (gateways) key += `\n${subject.gatewayId}`
    if (named.size > 0) key += `\n${lineageOf(subject).filter((id) => named.has(id))}`
    key += `\n${subject.policyIds}`
    // Last, because it is the one part that a caller may choose: it must not be able to imitate another part.
    return models ? `${key}\n${JSON.stringify(namesOf(subject))}` : key
  }
}

const namesOf = ({ model, modelAliases = [] }: ChainSubject): readonly string[] | null =>
  model === null ? null : [model, ...modelAliases]

const lineageOf = ({ tokenId, tokenLineage = [] }: ChainSubject): readonly string[] => [tokenId, ...tokenLineage]

/** Whether a policy applies to this subject. */
export function matches({ id, targets }: Pick<StoredPolicy, 'id' | 'targets'>, subject: ChainSubject): boolean {
  const { teams, gateways, tokens, models, families } = targets
  if (families !== undefined && !families.includes(subject.family)) return false
  const names = namesOf(subject)
  if (models !== undefined && names !== null && !names.some((name) => someGlobMatches(models, name))) return false
  if (subject.policyIds.includes(id)) return true
  if (teams !== undefined && (subject.teamId === null || !teams.includes(subject.teamId))) return false
  if (gateways !== undefined && !gateways.includes(subject.gatewayId)) return false
  return tokens === undefined || lineageOf(subject).some((token) => tokens.includes(token))
}

function makeChain(members: readonly Member[], chainOf: (model: ModelView) => PolicyChain): PolicyChain {
  const deciding = members.filter(({ active }) => !keepsAnswers(active))
  const at = (stage: PolicyStage) =>
    deciding.filter(({ stored }) => stored.stages.includes(stage)).map(({ active }) => active)
  const stages = {
    pre_request: at('pre_request'),
    post_request: at('post_request'),
    pre_response: at('pre_response'),
  } satisfies Record<PolicyStage, readonly ActivePolicy[]>
  const policies = deciding.map(({ active }) => active)
  return {
    stages: new Set(deciding.flatMap(({ stored }) => stored.stages)),
    size: deciding.length,
    at: (stage) => stages[stage],
    caches: members.map(({ active }) => active).filter((policy) => policy.enforced && keepsAnswers(policy)),
    escalatesAnswers: [...stages.post_request, ...stages.pre_response].some(mayEscalate),
    allowsModel: (model) => policies.every((policy) => permits(policy, model)) && isWithin(chainOf(model), stages),
  }
}

const keepsAnswers = ({ compiled }: ActivePolicy): boolean =>
  !(compiled instanceof Error) && compiled.form === 'whole' && compiled.cache !== undefined

const mayEscalate = ({ enforced, compiled }: ActivePolicy): boolean =>
  enforced &&
  !(compiled instanceof Error) &&
  (compiled.form === 'whole' ? compiled.mark === undefined : compiled.action === 'escalate')

const permits = ({ enforced, condition, compiled }: ActivePolicy, model: ModelView): boolean =>
  !enforced ||
  condition !== null ||
  compiled instanceof Error ||
  compiled.form !== 'whole' ||
  (compiled.allowsModel?.(model) ?? true)

const isWithin = (chain: PolicyChain, stages: Record<PolicyStage, readonly ActivePolicy[]>): boolean =>
  (['pre_request', 'post_request', 'pre_response'] as const).every((stage) =>
    chain.at(stage).every((policy) => !policy.enforced || stages[stage].includes(policy)),
  )
