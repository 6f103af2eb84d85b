import { useEffect, useState } from 'preact/hooks'
import { api, type SignInWays } from '../../api/routes.ts'
import { TextField } from '../../parts/forms/field.tsx'
import { useModal } from '../../parts/frame/dialog.tsx'
import { Brand, StandalonePage } from '../../parts/frame/frame.tsx'
import { useLoaded } from '../../parts/loaded.tsx'
import { sessionNote } from '../../session.ts'
import { ProviderButtons, RefusedSignIn } from './providers.tsx'
import { useSecondFactor } from './second-factor.tsx'
import { StandaloneForm } from './standalone-form.tsx'

/** Over a screen whose session has ended: nothing of it can be seen or reached, and it is there again afterwards. */
export function SignInAgain() {
  const { element, ...held } = useModal(true, () => undefined)
  return (
    <dialog ref={element} class="whole" aria-label="Sign in" {...held}>
      <SignIn />
    </dialog>
  )
}

/** Where the ways cannot be read, the password is one. */
const passwordAlone: SignInWays = { identity_providers: [], passwords: 'everybody' }

/** Stands in place of whatever the address names, which is shown once somebody has signed in. */
export function SignIn() {
  const found = useLoaded('ways to sign in', (signal) => api('GET /v1/auth/identity-providers', { signal }))
  const [byPassword, setByPassword] = useState(false)
  const ways = found.value ?? (found.refusal === null ? null : passwordAlone)
  if (ways === null) return null
  const hasProviders = ways.identity_providers.length > 0
  return hasProviders && ways.passwords === 'break_glass' && !byPassword ? (
    <ByProvider ways={ways} usePassword={() => setByPassword(true)} />
  ) : (
    <ByPassword ways={ways} />
  )
}

const signsIn = {
  action: 'Continue with',
  begin: (asked: { identity_provider_id: string; return_to: string }) =>
    api('POST /v1/auth/identity-providers/begin', { body: asked }),
}

const Notes = () => (
  <>
    {sessionNote.value !== null && <p class="note">{sessionNote.value}</p>}
    <RefusedSignIn />
  </>
)

/** Where passwords are for emergencies only. */
function ByProvider({ ways, usePassword }: { ways: SignInWays; usePassword(): void }) {
  useEffect(() => {
    document.title = 'Sign in · Gatehouse'
  }, [])
  return (
    <StandalonePage>
      <Brand />
      <div class="card form">
        <h1>Sign in</h1>
        <Notes />
        <ProviderButtons providers={ways.identity_providers} {...signsIn} primary />
      </div>
      <p class="row between small">
        <span class="quiet">Passwords are for the break-glass owner only.</span>
        <button type="button" class="plain" onClick={usePassword}>
          Use a password
        </button>
      </p>
    </StandalonePage>
  )
}

function ByPassword({ ways }: { ways: SignInWays }) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { attempt, given, field } = useSecondFactor()
  return (
    <StandaloneForm
      title="Sign in"
      action={['Sign in', 'Signing in…']}
      send={() => attempt(() => api('POST /v1/auth/login', { body: { email, password, ...given } }))}
      below={
        <p class="small quiet">
          No account yet? An owner or admin makes one, with <code>gatehouse user create</code>. The first owner uses the
          link that the first start printed.
        </p>
      }
    >
      {() => (
        <>
          <h1>Sign in</h1>
          <Notes />
          {ways.identity_providers.length > 0 && (
            <>
              <ProviderButtons providers={ways.identity_providers} {...signsIn} />
              <p class="small quiet">Or by password:</p>
            </>
          )}
          <TextField
            label="E-mail address"
            type="email"
            value={email}
            set={setEmail}
            autocomplete="username"
            required
            focus
          />
          <TextField
            label="Password"
            type="password"
            value={password}
            set={setPassword}
            autocomplete="current-password"
            required
          />
          {field}
        </>
      )}
    </StandaloneForm>
  )
}
