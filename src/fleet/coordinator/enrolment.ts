/**
 * Bounds of a gateway record (fleet/README.md, Trust): how many instances it may have, and from which addresses.
 * Checked by bootstrap when an instance starts. Its first handshake is recorded as an event.
 *
 * An instance counts while it has a session. One that ends without a deregistration counts for up to 15 minutes more.
 */
import { BlockList, isIP } from 'node:net'
import { z } from 'zod'
import { controlPlaneEvent } from '../../events/control-plane-event.ts'
import { brokenConstraint } from '../../events/log/append.ts'
import { Failure } from '../../failure.ts'
import { anonymous } from '../../identity/principal.ts'
import type { Statement } from '../../store/statement.ts'
import type { FleetOptions } from './options.ts'
import type { Worker } from './worker-registry.ts'

export interface Bounds {
  max_instances: number | null
  addresses: string[] | null
}

const rangesSchema = z.array(z.string()).nullable()

/** The bounds of a gateway; without a row there are none. */
export async function readBounds({ ledger }: Pick<FleetOptions, 'ledger'>, gatewayId: string): Promise<Bounds> {
  const [row] = await ledger.read<{ max_instances: number | null; addresses: string | null }>(
    'select max_instances, addresses from gateway_bounds where gateway_id = ?',
    [gatewayId],
  )
  return {
    max_instances: row?.max_instances ?? null,
    addresses: rangesSchema.parse(JSON.parse(row?.addresses ?? 'null')),
  }
}

export interface NewInstance {
  gatewayId: string
  instanceId: string
  /** The network address of the caller. */
  address: string
  now: number
}

/**
 * Throws `access_denied` if the instance's address is not allowed. Returns a statement for the transaction that makes
 * the session, which fails if the gateway already has enough other instances.
 */
export async function enrolmentGuard(
  { ledger }: Pick<FleetOptions, 'ledger'>,
  { gatewayId, instanceId, address, now }: NewInstance,
): Promise<Statement[]> {
  const { max_instances: most, addresses } = await readBounds({ ledger }, gatewayId)
  if (addresses !== null && !isWithin(address, addresses)) {
    throw new Failure('access_denied', { message: 'This gateway allows no instances from this address' })
  }
  if (most === null) return []
  return [
    {
      sql: `insert into guards (holds) select 0 where ? <= (select count(distinct instance_id) from runtime_sessions
        where gateway_id = ? and instance_id <> ? and expires_at > ?)`,
      args: [most, gatewayId, instanceId, now],
    },
  ]
}

/**
 * Whether an address is in one of the ranges, `10.0.0.0/8` or `2001:db8::/32`. Also matches IPv4 addresses mapped into
 * IPv6.
 */
export function isWithin(address: string, ranges: readonly string[]): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  const family = familyOf(plain)
  if (family === null) return false
  const list = new BlockList()
  for (const range of ranges) {
    const parsed = parseRange(range)
    if (parsed !== null) list.addSubnet(parsed.network, parsed.bits, parsed.family)
  }
  return list.check(plain, family)
}

/** Parses a CIDR range or a single address; null if it is neither. */
export function parseRange(range: string): { network: string; bits: number; family: 'ipv4' | 'ipv6' } | null {
  const [network = '', bits, ...more] = range.split('/')
  const family = familyOf(network)
  if (family === null || more.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return null
  const most = family === 'ipv4' ? 32 : 128
  const length = bits === undefined ? most : Number(bits)
  return length <= most ? { network, bits: length, family } : null
}

function familyOf(address: string): 'ipv4' | 'ipv6' | null {
  const version = isIP(address)
  if (version === 0) return null
  return version === 4 ? 'ipv4' : 'ipv6'
}

/** Records the first connection of an instance. */
export async function recordEnrolment(
  { ledger, recorder, clock, newId }: Pick<FleetOptions, 'ledger' | 'recorder' | 'clock' | 'newId'>,
  { gatewayId, instanceId, tokenId, worker }: Pick<Worker, 'gatewayId' | 'instanceId' | 'tokenId' | 'worker'>,
  version: number,
): Promise<void> {
  const known = await ledger.read('select 1 from instances where instance_id = ?', [instanceId])
  if (known.length > 0) return
  const event = controlPlaneEvent({
    type: 'fleet.enrolled',
    principal: { ...anonymous, name: `runtime:${tokenId}`, tokenId, gatewayId },
    requestId: 'registration',
    details: { gateway_id: gatewayId, instance_id: instanceId, worker },
    configVersion: version,
    clock,
    newId,
  })
  const row = { sql: 'insert into instances (instance_id, gateway_id, enrolled_at) values (?, ?, ?)' }
  try {
    await recorder().change({ event, state: [], ledger: [{ ...row, args: [instanceId, gatewayId, clock.now()] }] })
  } catch (error) {
    // Another worker of the instance was first.
    if (brokenConstraint(error) !== 'unique') throw error
  }
}
