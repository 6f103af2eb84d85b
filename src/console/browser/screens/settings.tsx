/** The person's own: password, sessions, look; and what this installation is. */
import { useState } from 'preact/hooks'
import type { Session } from '../api/caller.ts'
import { api } from '../api/routes.ts'
import { humanize } from '../formats.ts'
import { installation } from '../installation.ts'
import { RadioField, TextField } from '../parts/forms/field.tsx'
import { Confirm, useAction } from '../parts/frame/dialog.tsx'
import { PageHeader } from '../parts/frame/frame.tsx'
import { showKeys } from '../parts/frame/keys.tsx'
import { showToast } from '../parts/frame/toast.tsx'
import { ErrorNote, useLoaded } from '../parts/loaded.tsx'
import { Facts, Time } from '../parts/small.tsx'
import { Empty, TableCard } from '../parts/table.tsx'
import { applyTheme, type Theme, theme } from '../preferences.ts'
import { caller } from '../session.ts'
import { SecondFactor } from './second-factor-settings.tsx'
import { ProviderButtons, RefusedSignIn } from './sign-in/providers.tsx'
import { signOut } from './sign-in/sign-out.ts'

export function Settings() {
  const user = caller.value?.user
  const leaving = useAction(signOut, () => undefined)
  return (
    <>
      <PageHeader title="Settings">
        <button type="button" onClick={showKeys}>
          Keyboard
        </button>
        <button type="button" disabled={leaving.busy} onClick={leaving.run}>
          Sign out
        </button>
      </PageHeader>
      {leaving.refusal !== null && <ErrorNote refusal={leaving.refusal} />}
      <RefusedSignIn />
      <div class="sides">
        <section class="card stack">
          <h2>You</h2>
          <Facts
            facts={[
              ['Name', user?.name],
              ['E-mail address', user?.email],
              ['Role', humanize(user?.role ?? 'none')],
            ]}
          />
          <RadioField<Theme>
            label="Theme"
            value={theme.value}
            set={applyTheme}
            options={[
              { value: 'system', label: 'System' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ]}
          />
        </section>
        <Password />
        <SecondFactor />
        <Providers />
        <section class="card stack">
          <h2>This installation</h2>
          <Facts
            facts={[
              ['Control plane', <code key="control-plane">{installation.base_url}</code>],
              ['Gateway', <code key="gateway">{installation.gateway_url}</code>],
            ]}
          />
          <p>
            <a href="/docs" target="_blank" rel="noreferrer">
              API documentation
            </a>
          </p>
          <p class="quiet">
            Server settings come from its file, environment and flags: <code>gatehouse config explain</code> shows each
            and where it came from.
          </p>
        </section>
      </div>
      <Sessions />
    </>
  )
}

function Password() {
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const { busy, refusal, form } = useAction(
    () => api('POST /v1/auth/password', { body: { current_password: current, new_password: next } }),
    () => {
      setCurrent('')
      setNext('')
      showToast('Your password is changed. Your other sessions have ended.')
    },
  )
  return (
    <section class="card stack">
      <h2>Password</h2>
      <form class="form" {...form}>
        <TextField
          label="Current password"
          type="password"
          autocomplete="current-password"
          value={current}
          set={setCurrent}
          required
        />
        <TextField
          label="New password"
          type="password"
          autocomplete="new-password"
          minLength={12}
          hint="12 characters or more. Your other sessions end."
          value={next}
          set={setNext}
          required
          fault={refusal?.param === 'new_password' ? refusal.message : null}
        />
        {refusal !== null && <ErrorNote refusal={refusal} />}
        <div class="row">
          <button type="submit" disabled={busy}>
            Change password
          </button>
        </div>
      </form>
    </section>
  )
}

/** Where the person can have their identity at a provider linked to this account, which the password proves. */
function Providers() {
  const found = useLoaded('ways to sign in', (signal) => api('GET /v1/auth/identity-providers', { signal }))
  const [password, setPassword] = useState('')
  const providers = found.value?.identity_providers ?? []
  if (providers.length === 0 || caller.value?.user?.has_password !== true) return null
  return (
    <section class="card stack">
      <h2>Identity providers</h2>
      <div class="form">
        <p>
          Link your identity at a provider to this account. From then on you can sign in there, and your groups there
          decide your role.
        </p>
        <TextField
          label="Your password"
          type="password"
          autocomplete="current-password"
          value={password}
          set={setPassword}
        />
        <ProviderButtons
          providers={providers}
          action="Link"
          begin={(asked) =>
            api('POST /v1/auth/identity-providers/link', { body: { ...asked, current_password: password } })
          }
        />
      </div>
    </section>
  )
}

function Sessions() {
  const found = useLoaded('sessions', (signal) => api('GET /v1/auth/sessions', { signal }))
  const [ending, setEnding] = useState<Session | null>(null)
  return (
    <section class="stack close">
      <h2>Your sessions</h2>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="Your sessions"
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.sessions}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Where',
            cell: ({ kind, program, current }) => (
              <>
                {kind === 'browser' ? 'Browser' : `Program ${program ?? ''}`}{' '}
                {current && <span class="tag">this one</span>}
              </>
            ),
          },
          { title: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} about />, nowrap: true },
          { title: 'Started', cell: ({ created_at }) => <Time at={created_at} />, from: 'wide', nowrap: true },
          { title: 'Ends', cell: ({ expires_at }) => <Time at={expires_at} />, from: 'wide', nowrap: true },
          {
            title: 'Action',
            right: true,
            cell: (session) =>
              session.current ? null : (
                <button type="button" class="danger" onClick={() => setEnding(session)}>
                  End
                </button>
              ),
          },
        ]}
        empty={<Empty title="No session" />}
      />
      {ending !== null && (
        <Confirm
          title="End this session"
          action="End"
          close={() => setEnding(null)}
          work={async () => {
            await api('DELETE /v1/auth/sessions/{id}', { params: { id: ending.id } })
            showToast('The session has ended')
            found.reload()
          }}
        >
          <p>
            {ending.kind === 'browser' ? 'The person who uses it' : `The program ${ending.program ?? ''}`} has to sign
            in again. It was last used <Time at={ending.last_used_at} about />.
          </p>
        </Confirm>
      )}
    </section>
  )
}
