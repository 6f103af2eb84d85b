/**
 * The runtime token that every start hands to the gateway beside it: the ledger keeps its secret, sealed. Rotating that
 * very token keeps the new secret in its place, so that the next start, or the running one, hands over what is in force.
 */

import { hashSecret } from '../../identity/secret.ts'
import { readSecret, replaceSecret, type SealedSecret } from '../../store/keys/master-key.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

const name = 'runtime-token'

export const sealedRuntimeToken = {
  name,
  /** Null before the first start has drawn one. */
  read: ({ ledger, masterKey }: Kept): Promise<SealedSecret | null> => readSecret(ledger, masterKey, name),
  /** Puts `to` in its place; nothing changes where somebody else was faster. */
  replace: ({ masterKey }: Kept, from: SealedSecret, to: string): Statement =>
    replaceSecret(masterKey, name, { from, to }),
}

interface Kept {
  ledger: Database
  masterKey: Uint8Array
}

/** What a rotation of the token with this hash has to seal: nothing where it is not that one. */
export async function resealed(kept: Kept, hash: string, secret: string): Promise<Statement[]> {
  const sealed = await sealedRuntimeToken.read(kept)
  if (sealed === null || hashSecret(sealed.secret) !== hash) return []
  return [sealedRuntimeToken.replace(kept, sealed, secret)]
}

/** Gives a look at the kept secret, which tells of it where it is not the one that was handed over: any may rotate it. */
export function lookForRotation(kept: Kept, handedOver: string, tell: (secret: string) => void): () => Promise<void> {
  let last = handedOver
  return async () => {
    const sealed = await sealedRuntimeToken.read(kept)
    if (sealed === null || sealed.secret === last) return
    last = sealed.secret
    tell(last)
  }
}
