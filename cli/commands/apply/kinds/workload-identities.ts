import { workloadIdentityResource } from '../../../../src/workloads/workload-identity-resource.ts'
import { kindOf } from '../kind.ts'
import { entryMember } from '../places.ts'

/** Of keys that a file gives, the API shows their names only; a file without keys leaves them as they are. */
const summaryOf = (keys: unknown) =>
  Array.isArray(keys)
    ? keys.map((key) => ({
        kid: entryMember(key, 'kid') ?? null,
        kty: entryMember(key, 'kty'),
        alg: entryMember(key, 'alg') ?? null,
      }))
    : null

export const workloadIdentities = kindOf(workloadIdentityResource, {
  kept: ['keys'],
  compared: { keys: (keys) => summaryOf(entryMember(keys, 'keys')) },
  unexported: ['keys'],
  shown: ({ keys, keys_source: source }) => ({ keys: source === 'given' ? summaryOf(keys) : null }),
})
