/** What the pages that let others in have in common: who decides, and the way out. */
import { api } from '../api/routes.ts'
import { caller, sessionNote, sessionOver } from '../session.ts'

export async function signOut(): Promise<void> {
  await api('POST /v1/auth/logout', {})
  sessionNote.value = null
  sessionOver.value = false
  caller.value = null
}

export const SignedInAs = () => (
  <p class="row between small">
    <span class="quiet">Signed in as {caller.value?.user?.email}</span>
    <button type="button" class="plain" onClick={() => void signOut()}>
      Not you?
    </button>
  </p>
)

/** Follows a redirect that the API built. Another scheme than those of pages is never followed. */
export function leaveFor(redirectTo: string): void {
  if (!/^https?:\/\//.test(redirectTo)) throw new Error('The redirect leads to no page')
  location.assign(redirectTo)
}
