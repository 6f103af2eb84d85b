import { useState } from 'preact/hooks'
import { href, navigate } from '../../address.ts'
import { api } from '../../api/routes.ts'
import { TextField } from '../../parts/forms/field.tsx'
import { Brand, StandalonePage } from '../../parts/frame/frame.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { userText } from '../../parts/user-text.tsx'
import { useSecondFactor } from './second-factor.tsx'
import { secretOfLink } from './secret-of-link.ts'
import { StandaloneForm } from './standalone-form.tsx'

const secret = secretOfLink('/invitation')

/** Where an invitation leads: the person sets their own password. */
export function Invitation() {
  const found = useLoaded('invitation', (signal) =>
    api('POST /v1/auth/invitation/preview', { body: { secret }, signal }),
  )
  const [password, setPassword] = useState('')
  const { attempt, given, field } = useSecondFactor()
  if (found.refusal !== null) {
    return (
      <StandalonePage>
        <Brand />
        <ErrorNote refusal={found.refusal} />
        <p>
          <a href={href('/')}>Go to the console</a>
        </p>
      </StandalonePage>
    )
  }
  if (found.value === undefined) return null
  const { email, name } = found.value
  return (
    <StandaloneForm
      title="Welcome"
      action={['Set the password', 'Setting it…']}
      send={() => attempt(() => api('POST /v1/auth/invitation/accept', { body: { secret, password, ...given } }))}
      done={() => navigate(href('/'), { replace: true })}
    >
      {(fault) => (
        <>
          <h1>Welcome, {userText(name)}</h1>
          <p>Choose the password for your account. The link works once.</p>
          <TextField label="E-mail address" type="email" value={email} set={() => undefined} autocomplete="username" />
          <TextField
            label="New password"
            hint="12 characters or more"
            type="password"
            value={password}
            set={setPassword}
            autocomplete="new-password"
            minLength={12}
            required
            focus
            fault={fault('password')}
          />
          {field}
        </>
      )}
    </StandaloneForm>
  )
}
