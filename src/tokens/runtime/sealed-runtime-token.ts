/**
 * The runtime token that every start gives to the gateway beside it. The ledger keeps its secret encrypted. Rotating
 * this token stores the new secret, so that the next start, or the running one, uses the valid one.
 */

import { hashSecret } from '../../identity/secret.ts'
import type { MasterKey } from '../../store/keys/master-key.ts'
import { readSecret, replaceSecret, type SealedSecret } from '../../store/keys/secrets.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

const name = 'runtime-token'

export const sealedRuntimeToken = {
  name,
  /** Null before the first start has made one. */
  read: ({ ledger, masterKey }: Kept): Promise<SealedSecret | null> => readSecret(ledger, masterKey, name),
  /** Replaces it by `to`; changes nothing if another process was faster. */
  replace: ({ masterKey }: Kept, from: SealedSecret, to: string): Statement =>
    replaceSecret(masterKey, name, { from, to }),
}

interface Kept {
  ledger: Database
  masterKey: MasterKey
}

/** What a rotation of the token with this hash has to store: nothing if it is another token. */
export async function resealed(kept: Kept, hash: string, secret: string): Promise<Statement[]> {
  const sealed = await sealedRuntimeToken.read(kept)
  if (sealed === null || hashSecret(sealed.secret) !== hash) return []
  return [sealedRuntimeToken.replace(kept, sealed, secret)]
}

/**
 * Returns a check that reports the stored secret if it is not the one in use, since another control plane may have
 * rotated it.
 */
export function lookForRotation(kept: Kept, handedOver: string, tell: (secret: string) => void): () => Promise<void> {
  let last = handedOver
  return async () => {
    const sealed = await sealedRuntimeToken.read(kept)
    if (sealed === null || sealed.secret === last) return
    last = sealed.secret
    tell(last)
  }
}
