/** Tries policies before they take effect: on a given request, and on recorded ones (policies/README.md). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { sinceInstant, sinceSchema } from '../../events/query/since.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { familyNames } from '../../languages/families.ts'
import { familyOfBody } from '../../languages/family-of-body.ts'
import { dialects } from '../../languages/index.ts'
import { type JsonObject, parseObject, textOf } from '../../languages/reading/json-value.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { TokenView } from '../conditions/context.ts'
import type { PolicyTools } from '../kinds/kind.ts'
import { checkContent, contentOf, createPolicyBody } from '../policy-body.ts'
import { requirePolicy } from '../policy-record.ts'
import type { StoredPolicy } from '../stored-policy.ts'
import { replayPolicy } from './replay.ts'
import { type Finding, tryPolicies } from './trial.ts'
import { type findingSchema, replayReply, testReply } from './trial-replies.ts'

export interface TrialDependencies {
  state: Database
  ledger: Database
  clock: Clock
  /** The services that policies may use, as at a gateway. */
  policyTools: Omit<PolicyTools, 'signal' | 'throwIfCut'>
}

export const trialRoutes = ({ state, ledger, clock, policyTools }: TrialDependencies) => {
  const replay = async (
    policy: StoredPolicy,
    { principal, since, signal }: { principal: Principal; since: string; signal: AbortSignal },
  ) =>
    await replayPolicy({
      ...{ policy, ledger, clock, since: sinceInstant(since, clock.now()) },
      ...{ visibility: await visibilityFor(ledger, principal), tools: toolsFor(policyTools, signal) },
    })
  return new Elysia({ name: 'policy trials' })
    .use(conventions)
    .post(
      '/v1/policies/test',
      async ({ body, principal, request: { signal } }) => {
        requireMayCall(principal, body.policies)
        const policies = await policiesToTry({ state, ledger }, body)
        const { token, family = familyOfBody(body.request) } = body
        const dialect = dialects[family]
        const request = asGatewayReads(dialect, body.request)
        const outcome = await tryPolicies(
          policies.map(({ stored }) => stored),
          {
            dialect,
            request,
            response: body.response === undefined ? null : { status: body.response_status, body: body.response },
            headers: new Headers(body.headers),
            token: new TokenView({
              ...token,
              teamId: token.team_id,
              userId: token.user_id,
              gatewayId: token.gateway_id,
            }),
            provider: body.provider,
            now: new Date(clock.now()),
          },
          { tools: toolsFor(policyTools, signal), monotonic: () => clock.monotonic() },
        )
        const byId = new Map(policies.map((policy) => [policy.stored.id, policy]))
        const { verdict, reasonCode: reason_code } = outcome
        const findings = outcome.findings.map((finding) => shown(finding, byId.get(finding.policy_id)))
        return {
          verdict,
          reason_code,
          family,
          findings,
          request: asWritten(dialect, request),
          response: body.response ?? null,
        }
      },
      {
        access: 'policies:read',
        body: testBody,
        response: testReply,
        detail: {
          tags: ['Policies'],
          summary: 'Tries policies on a request and an answer; stores nothing',
        },
      },
    )
    .post(
      '/v1/policies/:id/replay',
      async ({ principal, params, body: { since }, request: { signal } }) => {
        const { stored: policy } = await requirePolicy({ state, ledger }, params.id)
        return await replay(policy, { principal, since, signal })
      },
      {
        access: 'policies:read',
        params: z.object({ id: z.uuid() }),
        body: z.strictObject({ since: sinceSchema }),
        response: replayReply,
        detail: { tags: ['Policies'], summary: 'Tries a policy on recorded requests; stores nothing' },
      },
    )
    .post(
      '/v1/policies/replay',
      async ({ principal, body: { policy, since }, request: { signal } }) => {
        requireMayCall(principal, [policy])
        const [tried] = await policiesToTry({ state, ledger }, { policies: [policy] })
        if (tried === undefined) throw new Failure('internal')
        return await replay(tried.stored, { principal, since, signal })
      },
      {
        access: 'policies:read',
        body: z.strictObject({ since: sinceSchema, policy: createPolicyBody.describe('It need not exist') }),
        response: replayReply,
        detail: {
          tags: ['Policies'],
          summary: 'Tries a policy that need not exist on recorded requests; stores nothing',
        },
      },
    )
}

/** A request whose wire form is another than the gateway's own, in the latter; its model stands in the body here. */
function asGatewayReads({ gatewayForm }: Dialect, request: JsonObject): JsonObject {
  if (gatewayForm === undefined) return request
  const address = `http://gateway/v1beta/models/${encodeURIComponent(textOf(request.model) ?? '')}:generateContent`
  return parseObject(gatewayForm(JSON.stringify(request), address)) ?? request
}

const asWritten = ({ wireForm }: Dialect, request: JsonObject): JsonObject =>
  wireForm === undefined ? request : { model: request.model, ...parseObject(wireForm(JSON.stringify(request))) }

const object = z.record(z.string(), z.unknown())

const testBody = z.strictObject({
  policies: z.array(createPolicyBody).min(1).max(100).optional().describe('Policies that need not exist, in order'),
  policy_ids: z.array(z.uuid()).min(1).max(100).optional().describe('Or policies that exist, in this order'),
  request: object.describe("A request's body as an application would send it"),
  response: object.optional().describe("A whole answer's body, for the stages after the request"),
  response_status: z.number().int().min(100).max(599).default(200),
  family: z
    .enum(familyNames)
    .optional()
    .describe('The language of request and response; recognized by the members of the request if it is left out'),
  headers: z.record(z.string(), z.string()).default({}).describe("The request's headers"),
  provider: z.string().max(200).default('').describe('Who would answer, as conditions see it'),
  token: z
    .strictObject({
      id: z.string().default(''),
      purpose: z.string().default('general'),
      roles: z.array(z.string()).default(['member']),
      team_id: z.string().nullable().default(null),
      user_id: z.string().nullable().default(null),
      gateway_id: z.string().nullable().default(null),
      metadata: z.record(z.string(), z.string()).default({}),
    })
    .prefault({})
    .describe('Who would ask, as conditions see it'),
})

/** What policies may use for a request to the control plane. */
const toolsFor = (policyTools: TrialDependencies['policyTools'], signal: AbortSignal): PolicyTools => ({
  ...policyTools,
  signal,
  throwIfCut: () => signal.throwIfAborted(),
})

/** A caller that may only read policies must not make this service call addresses of its choice. */
function requireMayCall({ permissions }: Principal, policies: z.infer<typeof testBody>['policies']): void {
  const place = policies?.findIndex(({ kind }) => kind === 'webhook') ?? -1
  if (place < 0 || permissions.has('policies:write')) return
  const message = 'Trying a webhook that does not exist yet needs the permission policies:write'
  throw new Failure('permission_denied', { message, param: `policies.${place}` })
}

interface Tried {
  stored: StoredPolicy
  name: string
  given: boolean
}

async function policiesToTry(
  databases: { state: Database; ledger: Database },
  { policies, policy_ids: ids }: Pick<z.infer<typeof testBody>, 'policies' | 'policy_ids'>,
): Promise<Tried[]> {
  if ((policies === undefined) === (ids === undefined)) {
    throw new Failure('invalid_parameter', {
      param: 'policies',
      message: 'Give policies or policy_ids, one of the two',
    })
  }
  if (ids !== undefined) {
    return await Promise.all(
      ids.map(async (id, index) => {
        const { stored, known } = await requirePolicy(databases, id).catch((cause: unknown) => {
          if (!(cause instanceof Failure) || cause.code !== 'not_found') throw cause
          throw new Failure('invalid_parameter', {
            param: `policy_ids.${index}`,
            message: 'There is no such policy',
            cause,
          })
        })
        return { stored, name: known.name, given: false }
      }),
    )
  }
  return (policies ?? []).map((body, index) => {
    const content = contentOf(body)
    within(`policies.${index}`, () => checkContent(content))
    return { stored: { ...content, id: `given-${index}`, position: index, version: 0 }, name: body.name, given: true }
  })
}

/** Names a field from the root of the whole body. */
function within(path: string, check: () => void): void {
  try {
    check()
  } catch (error) {
    if (!(error instanceof Failure) || error.param === null) throw error
    throw new Failure(error.code, { message: error.message, param: `${path}.${error.param}`, cause: error })
  }
}

const shown = ({ policy_id, stage, said }: Finding, tried: Tried | undefined): z.infer<typeof findingSchema> => ({
  policy_id: tried?.given === false ? policy_id : null,
  name: tried?.name ?? policy_id,
  kind: said.policy.kind,
  stage,
  mode: said.policy.enforced ? 'enforce' : 'monitor',
  verdict: said.decision.verdict,
  reason_code: said.decision.reasonCode,
  message: said.decision.message ?? null,
  latency_ms: said.latencyMs,
  targets: [...said.decision.targets],
})
