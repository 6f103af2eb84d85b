import { useModal } from '../../parts/frame/dialog.tsx'
import { Brand, StandalonePage } from '../../parts/frame/frame.tsx'
import { caller, continueAsOtherAccount, otherAccount } from '../../session.ts'

/** Over a screen with a draft in it, to which another account came: nothing is sent before the person has said so. */
export function AccountChanged() {
  const { element, ...held } = useModal(true, () => undefined)
  return (
    <dialog ref={element} class="whole" aria-label="The account changed" {...held}>
      <StandalonePage>
        <Brand />
        <div class="card stack">
          <h1>The account changed</h1>
          <p class="wrap">
            You are now signed in as {otherAccount.value?.user?.email}. Nothing was sent, and what you typed as{' '}
            {caller.value?.user?.email} is kept.
          </p>
          <p>Sign in with the earlier account in another tab to continue, or continue with the current account.</p>
          <button type="button" onClick={continueAsOtherAccount}>
            Go on as {otherAccount.value?.user?.name}
          </button>
        </div>
      </StandalonePage>
    </dialog>
  )
}
