/**
 * A device that asks whether the person has answered (RFC 8628 sections 3.4, 3.5), as a table of checks. After an
 * approval the device code is the code of a grant: from there on it works, ends and is replayed like any code.
 */
import type { Database } from '../../store/open.ts'
import { type Check, refuse } from '../authorize/check.ts'
import {
  approvedResource,
  clientInService,
  type GrantFacts,
  inForce,
  invalidGrant,
  required,
  scopeStands,
} from '../tokens/token-request.ts'
import { type DeviceCode, findDeviceCode, notePoll } from './stored-device-code.ts'

export interface PollFacts extends GrantFacts {
  /** Null if the code is unknown. */
  device: DeviceCode | null
  /** It was asked again before the interval had passed. */
  isTooSoon: boolean
}

/** What a device adds to its interval when it is told to slow down (RFC 8628 section 3.5). */
const slowerSeconds = 5
/** Requests that left in time may arrive closer together. */
const jitterMilliseconds = 1000

const unanswered = ({ device }: PollFacts): boolean => device?.decision === null

export const pollChecks: readonly Check<PollFacts>[] = [
  required('device_code', 'RFC 8628 §3.4'),
  {
    name: 'known device code',
    source: 'RFC 6749 §5.2',
    check: ({ device }) => (device === null ? invalidGrant('The device code is not valid') : null),
  },
  {
    name: 'device code of this client',
    source: 'RFC 8628 §3.4',
    check: ({ device, client }) =>
      device?.clientId === client?.id ? null : invalidGrant('The device code was given to another application'),
  },
  clientInService,
  {
    name: 'not denied',
    source: 'RFC 8628 §3.5',
    check: ({ device }) => (device?.decision === 'denied' ? refuse('access_denied', 'The person did not agree') : null),
  },
  {
    name: 'device code in time',
    source: 'RFC 8628 §3.5',
    check: (facts) => {
      const end = unanswered(facts) ? facts.device?.expiresAt : facts.grant?.codeExpiresAt
      const used = facts.grant !== null && facts.grant.codeUsedAt !== null
      return used || facts.now < (end ?? 0)
        ? null
        : refuse('expired_token', 'The device code has expired: ask for another one')
    },
  },
  {
    name: 'not polled too often',
    source: 'RFC 8628 §3.5',
    check: (facts) =>
      unanswered(facts) && facts.isTooSoon
        ? refuse('slow_down', `Ask at most every ${facts.device?.intervalSeconds} seconds`)
        : null,
  },
  {
    name: 'answered by a person',
    source: 'RFC 8628 §3.5',
    check: (facts) =>
      unanswered(facts) ? refuse('authorization_pending', 'Nobody has entered the user code and answered yet') : null,
  },
  {
    name: 'first use of the device code',
    source: 'RFC 6749 §4.1.2, §10.5',
    check: ({ grant }) =>
      grant?.codeUsedAt === null
        ? null
        : { ...invalidGrant('The device code was used before; what it gave has ended'), replay: true },
  },
  inForce,
  scopeStands(({ grant }) => grant?.scope ?? []),
  approvedResource,
]

/** Reads the code and notes that the device has asked; the interval grows with each poll that comes too soon. */
export async function notedPoll(
  ledger: Database,
  secret: string,
  now: number,
): Promise<Pick<PollFacts, 'device' | 'isTooSoon'>> {
  const device = await findDeviceCode(ledger, secret)
  if (device === null || device.decision !== null || now >= device.expiresAt) return { device, isTooSoon: false }
  const { polledAt, intervalSeconds } = device
  const isTooSoon = polledAt !== null && now - polledAt < intervalSeconds * 1000 - jitterMilliseconds
  const next = isTooSoon ? intervalSeconds + slowerSeconds : intervalSeconds
  await ledger.write([notePoll(device, now, next)])
  return { device: { ...device, intervalSeconds: next }, isTooSoon }
}
