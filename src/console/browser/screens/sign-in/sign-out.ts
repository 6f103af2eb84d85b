import { api } from '../../api/routes.ts'
import { signedOut } from '../../session.ts'
import { followRedirect } from './follow-redirect.ts'

/** Ends the session; where the identity provider's ends with it, the browser goes there. */
export async function signOut(): Promise<void> {
  const { redirect_to } = await api('POST /v1/auth/logout', {})
  signedOut()
  if (redirect_to !== null) followRedirect(redirect_to)
}
