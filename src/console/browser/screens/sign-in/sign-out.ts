import { api } from '../../api/routes.ts'
import { signedOut } from '../../session.ts'

export async function signOut(): Promise<void> {
  await api('POST /v1/auth/logout', {})
  signedOut()
}
