/**
 * The device authorization request (RFC 8628 section 3.1) as a table of checks, and its answer (section 3.2). The device
 * gets a code of 178 random bits to ask with, and shows a person the short one.
 */
import { brokenConstraint } from '../../events/log/append.ts'
import { hashSecret, makeSecret } from '../../identity/secret.ts'
import { addressKey } from '../../members/people/throttle.ts'
import { type Check, firstRefusal, type Refusal, refuse } from '../authorize/check.ts'
import { isRepeated, type Parameters, single } from '../authorize/parameters.ts'
import { knownResources, readResource } from '../authorize/resource.ts'
import { deviceGrant } from '../clients/client-resource.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { activeScopes, isScope, readScope, type Scope } from '../scope.ts'
import { clientOf } from '../tokens/issue-tokens.ts'
import { clientInService, knownClient, type RequestFacts, required } from '../tokens/token-request.ts'
import { addDeviceCode, countSince, type NewDeviceCode } from './stored-device-code.ts'
import { hashUserCode, makeUserCode } from './user-code.ts'

interface DeviceFacts extends RequestFacts {
  active: readonly Scope[]
  resources: readonly string[]
}

/** RFC 8628 section 3.2. */
export interface DeviceAnswer {
  device_code: string
  user_code: string
  verification_uri: string
  verification_uri_complete: string
  expires_in: number
  interval: number
}

/** Seconds between two polls (RFC 8628 section 3.2). */
export const pollSeconds = 5
/** Codes that one address gets in a minute: a gateway asks for all of its clients. */
const mostInAMinute = 60
const minute = 60_000
/** Two codes that wait are the same once in 10^10; the third try is for the reader. */
const tries = 3

export const deviceChecks: readonly Check<DeviceFacts>[] = [
  {
    name: 'no parameter twice',
    source: 'RFC 8628 §3.1',
    check: ({ parameters }) =>
      isRepeated(parameters, 'client_id') || isRepeated(parameters, 'scope')
        ? refuse('invalid_request', 'client_id and scope must be given once')
        : null,
  },
  required('client_id', 'RFC 8628 §3.1'),
  knownClient('RFC 6749 §5.2'),
  clientInService,
  {
    name: 'device code of this client',
    source: 'RFC 6749 §5.2',
    check: ({ client }) =>
      client?.grantTypes.includes(deviceGrant) === true
        ? null
        : refuse('unauthorized_client', `The application is not registered for ${deviceGrant}`),
  },
  {
    name: 'registered and active scope',
    source: 'oauth/README.md, RFC 6749 §3.3',
    check: (facts) => {
      const scope = scopeOf(facts)
      const stands = (word: string) =>
        isScope(word) && facts.active.includes(word) && facts.client?.scope.includes(word) === true
      return scope !== null && scope.length > 0 && scope.every(stands)
        ? null
        : refuse('invalid_scope', 'Not all of this scope is registered for the application and active')
    },
  },
  {
    name: 'known resource',
    source: 'RFC 8707 §2',
    check: ({ parameters, resources }) =>
      (parameters.get('resource') ?? []).every((text) => readResource(text, resources) !== null)
        ? null
        : refuse('invalid_target', 'resource must be this control plane, its gateway, or the MCP address of that'),
  },
]

/** What is asked for; without a parameter all that is active and registered. Null where it is malformed. */
function scopeOf({ parameters, client, active }: DeviceFacts): string[] | null {
  const asked = single(parameters, 'scope')
  if (asked !== null) return readScope(asked)
  return (client?.scope ?? []).filter((word) => isScope(word) && active.includes(word))
}

export async function authorizeDevice(
  dependencies: OAuthDependencies,
  parameters: Parameters,
  address: string,
): Promise<DeviceAnswer | Refusal> {
  const { ledger, clock, settings, baseUrl, gatewayUrl, consoleUrl } = dependencies
  const resources = knownResources({ baseUrl: baseUrl(), gatewayUrl: gatewayUrl() })
  const client = await clientOf(dependencies, parameters)
  const facts = { parameters, client, resources, active: activeScopes(settings.oauth_scopes) }
  const refusal = firstRefusal(deviceChecks, facts)
  if (refusal !== null || client === null) return refusal ?? refuse('invalid_client', 'No such application is known')
  const [key, now] = [addressKey(address), clock.now()]
  if ((await countSince(ledger, key, now - minute)) >= mostInAMinute) {
    return { ...refuse('slow_down', 'Too many devices ask from this address: try again in a minute'), retryAfter: 60 }
  }
  const { device, userCode } = await makeCodes(dependencies, {
    clientId: client.id,
    scope: scopeOf(facts) ?? [],
    resources: [...new Set((parameters.get('resource') ?? []).flatMap((text) => readResource(text, resources) ?? []))],
    addressKey: key,
    createdAt: now,
    expiresAt: now + settings.oauth_device_seconds * 1000,
    intervalSeconds: pollSeconds,
  })
  const page = `${consoleUrl().replace(/\/$/, '')}/device`
  return {
    device_code: device,
    user_code: userCode,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${userCode}`,
    expires_in: settings.oauth_device_seconds,
    interval: pollSeconds,
  }
}

type Asked = Omit<NewDeviceCode, 'hash' | 'userCodeHash'>

async function makeCodes({ ledger, randomBytes }: OAuthDependencies, asked: Asked) {
  for (let left = tries; ; left -= 1) {
    const [device, userCode] = [makeSecret('oauthCode', randomBytes), makeUserCode(randomBytes)]
    try {
      await ledger.write(addDeviceCode({ ...asked, hash: hashSecret(device), userCodeHash: hashUserCode(userCode) }))
      return { device, userCode }
    } catch (error) {
      if (left === 1 || brokenConstraint(error) === null) throw error
    }
  }
}
