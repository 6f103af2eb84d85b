/**
 * Bootstrap (fleet/README.md, Trust): exchanges a runtime token for a session credential bound to its gateway and
 * instance, and for the keys of this gateway: the data keys of its providers and of MCP servers, and the prompt-hash
 * key. The master key that decrypts them never leaves the control plane.
 */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../../api/conventions.ts'
import { brokenConstraint } from '../../../events/log/append.ts'
import { Failure } from '../../../failure.ts'
import { hashSecret, makeSecret } from '../../../identity/secret.ts'
import { timestamp } from '../../../lib/clock.ts'
import type { Database } from '../../../store/open.ts'
import { readNames } from '../../../store/schema/gateway-name.ts'
import type { Statement } from '../../../store/statement.ts'
import { organizationId } from '../../../tokens/organization.ts'
import { type BootstrapReply, bootstrapReplySchema, bootstrapRequestSchema } from '../../protocol/wire.ts'
import type { StateHead } from '../../state/state-head.ts'
import { enrolmentGuard } from '../enrolment.ts'
import type { FleetOptions } from '../options.ts'
import { stateSource } from './credential.ts'

const sessionMs = 15 * 60_000
const providerKeyName = 'provider-key:'
const serverKeyName = 'mcp-server-key:'
const promptHashKeyName = 'prompt-hash-key'
const promptHashKeySchema = z.object({ id: z.string(), key: z.string() })
const idsSchema = z.array(z.string()).nullable()

export interface BootstrapDependencies {
  options: FleetOptions
  stateHead: StateHead
}

export function bootstrapRoute({ options, stateHead }: BootstrapDependencies) {
  return new Elysia({ name: 'runtime bootstrap' }).use(conventions).post(
    '/v1/gateway-runtime/bootstrap',
    async ({ principal, body, request, set }) => {
      const { gatewayId, tokenId } = principal
      if (gatewayId === null || tokenId === null) {
        throw new Failure('access_denied', { message: 'The runtime token is not bound to a gateway' })
      }
      const head = await stateHead.read()
      const gateway = await readGateway(options, gatewayId)
      const { instance_id: instanceId, version } = body
      const guard = await enrolmentGuard(options, {
        ...{ gatewayId, instanceId },
        address: options.addressOf(request),
        now: options.clock.now(),
      })
      const session = await makeSession(options, { tokenId, gatewayId, instanceId, version }, guard)
      const reply: BootstrapReply = {
        session,
        organization_id: await requireOrganization(options.ledger),
        gateway: { id: gatewayId, name: gateway.name },
        head,
        state: stateSource(options),
        max_staleness_seconds: options.settings.max_staleness_seconds,
        ...(await readKeys(options, gateway.providers)),
        base_url: options.baseUrl(),
        gateway_url: options.gatewayUrl(),
        now: timestamp(options.clock.now()),
      }
      set.headers['cache-control'] = 'no-store'
      return reply
    },
    {
      access: 'runtime:connect',
      internal: true,
      body: bootstrapRequestSchema,
      response: bootstrapReplySchema,
      detail: { tags: ['Gateway runtime'], summary: 'Start a gateway instance: a session and the keys it may have' },
    },
  )
}

async function readGateway(
  { state, ledger }: FleetOptions,
  id: string,
): Promise<{ name: string; providers: string[] | null }> {
  const sql = 'select providers from gateways where id = ? and deleted = 0'
  const [row] = await state.read<{ providers: string | null }>(sql, [id])
  if (row === undefined) throw new Failure('access_denied', { message: "The runtime token's gateway does not exist" })
  const name = (await readNames(ledger, [id]))(id)
  return { name, providers: idsSchema.parse(JSON.parse(row.providers ?? 'null')) }
}

/** Deletes sessions that ended long ago in the same write. */
async function makeSession(
  { ledger, clock, randomBytes }: FleetOptions,
  bound: { tokenId: string; gatewayId: string; instanceId: string; version: string },
  guard: readonly Statement[],
): Promise<BootstrapReply['session']> {
  const token = makeSecret('session', randomBytes)
  const expiresAt = clock.now() + sessionMs
  const statements = [
    { sql: 'delete from runtime_sessions where expires_at < ?', args: [clock.now() - sessionMs] },
    ...guard,
    {
      sql: `insert into runtime_sessions (hash, token_id, gateway_id, instance_id, expires_at, gateway_version)
        values (?, ?, ?, ?, ?, ?)`,
      args: [hashSecret(token), bound.tokenId, bound.gatewayId, bound.instanceId, expiresAt, bound.version],
    },
  ]
  await ledger.write(statements).catch((error: unknown) => {
    if (brokenConstraint(error) !== 'check') throw error
    throw new Failure('access_denied', { message: 'The gateway has reached max_instances', cause: error })
  })
  return { token, expires_at: timestamp(expiresAt) }
}

async function requireOrganization(ledger: Database): Promise<string> {
  const id = await organizationId(ledger)
  if (id === null) throw new Failure('dependency_unavailable', { message: 'There is no organization yet' })
  return id
}

/** Decrypts the keys of the providers in `usable` (null: of all), of MCP servers, and the prompt-hash key. */
async function readKeys({ ledger, masterKey }: FleetOptions, usable: readonly string[] | null) {
  const sealed = await ledger.read<{ name: string; sealed: string }>(
    `select name, sealed from secrets
      where name = ? or name like '${providerKeyName}%' or name like '${serverKeyName}%'`,
    [promptHashKeyName],
  )
  const keys: Record<string, string> = {}
  let promptHashKey: z.infer<typeof promptHashKeySchema> | null = null
  for (const secret of sealed) {
    if (secret.name === promptHashKeyName) {
      promptHashKey = promptHashKeySchema.parse(JSON.parse(masterKey.open('secret', secret.name, secret.sealed)))
      continue
    }
    const id = secret.name.slice(secret.name.indexOf(':') + 1)
    const given = usable === null || usable.includes(id) || secret.name.startsWith(serverKeyName)
    if (given) keys[id] = masterKey.open('secret', secret.name, secret.sealed)
  }
  if (promptHashKey === null) {
    throw new Failure('dependency_unavailable', { message: 'There is no prompt-hash key yet' })
  }
  return { provider_keys: keys, prompt_hash_key: promptHashKey }
}
