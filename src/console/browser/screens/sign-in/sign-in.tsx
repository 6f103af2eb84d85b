import { useState } from 'preact/hooks'
import { api } from '../../api/routes.ts'
import { useModal } from '../../parts/dialog.tsx'
import { TextField } from '../../parts/field.tsx'
import { sessionNote } from '../../session.ts'
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

/** Stands in place of whatever the address names, which is shown once somebody has signed in. */
export function SignIn() {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  return (
    <StandaloneForm
      title="Sign in"
      action={['Sign in', 'Signing in…']}
      send={() => api('POST /v1/auth/login', { body: { email, password } })}
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
          {sessionNote.value !== null && <p class="note">{sessionNote.value}</p>}
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
        </>
      )}
    </StandaloneForm>
  )
}
