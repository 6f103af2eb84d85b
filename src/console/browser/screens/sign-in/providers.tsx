/** Sign-in at identity providers: a button for each, and why the last attempt came to nothing. */
import type { RefusalReason } from '../../../../members/identity-providers/provider-refusal.ts'
import { address, queryValue, setQuery } from '../../address.ts'
import type { SignInWays } from '../../api/routes.ts'
import { useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { userText } from '../../parts/user-text.tsx'
import { refusedSignIn } from '../../session.ts'
import { followRedirect } from './follow-redirect.ts'

const reasons: Readonly<Record<RefusalReason, string>> = {
  attempt_missing: 'The sign-in took too long, or began in another browser or tab. Start again.',
  throttled: 'There were too many attempts from your network. Wait a few minutes and start again.',
  provider_unreachable: 'Your identity provider does not answer. Try again later.',
  provider_denied: 'Your identity provider did not sign you in.',
  provider_refused_client: 'Your identity provider does not accept this installation. Tell an owner.',
  invalid_answer:
    'The answer of your identity provider could not be trusted. Start again, and tell an owner if it stays.',
  email_missing: 'Your identity provider names no e-mail address for you. Tell an owner.',
  email_unverified: 'Your identity provider has not verified your e-mail address.',
  domain_not_allowed: 'Your organization may not sign in here.',
  groups_not_listed: 'You are in more groups than your identity provider lists. Tell an owner.',
  no_role: 'None of your groups gives you access. Ask an owner or admin.',
  account_exists:
    'Another account has your e-mail address. If it is yours, sign in to it and link this provider under Settings.',
  account_disabled: 'Your account is disabled.',
  identity_taken: 'This identity belongs to another account already.',
}

const isReason = (text: string): text is RefusalReason => Object.hasOwn(reasons, text)

/** Takes the reason out of the address, where the callback put it. */
export function takeRefusedSignIn(): void {
  const reason = queryValue('sign_in_refused')
  if (reason === null) return
  refusedSignIn.value = isReason(reason) ? reasons[reason] : 'The sign-in came to nothing. Start again.'
  setQuery({ sign_in_refused: null }, { replace: true, keepPage: true })
}

export const RefusedSignIn = () =>
  refusedSignIn.value === null ? null : (
    <p class="note warn" role="alert">
      {refusedSignIn.value}
    </p>
  )

/** As much of an address as a cookie can keep. */
const longestReturn = 2000

function hereAndNow(): string {
  const query = address.value.query.toString()
  const here = `${address.value.path}${query === '' ? '' : `?${query}`}`
  return here.length > longestReturn ? address.value.path : here
}

type Provider = SignInWays['identity_providers'][number]

interface ButtonsProps {
  providers: readonly Provider[]
  /** What begins a sign-in there; it ends at the page that is open now. */
  begin(asked: { identity_provider_id: string; return_to: string }): Promise<{ redirect_to: string }>
  /** The words before the provider's name. */
  action: string
  primary?: boolean
}

export const ProviderButtons = ({ providers, ...shared }: ButtonsProps) => (
  <>
    {providers.map((provider) => (
      <ProviderButton key={provider.id} provider={provider} {...shared} />
    ))}
  </>
)

function ProviderButton({
  provider: { id, name },
  begin,
  action,
  primary = false,
}: Omit<ButtonsProps, 'providers'> & { provider: Provider }) {
  const { run, busy, refusal } = useAction(
    () => begin({ identity_provider_id: id, return_to: hereAndNow() }),
    ({ redirect_to }) => followRedirect(redirect_to),
  )
  return (
    <>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <button type="button" class={primary ? 'primary' : ''} disabled={busy} onClick={run}>
        {action} {userText(name)}
      </button>
    </>
  )
}
