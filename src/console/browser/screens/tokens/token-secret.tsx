/** The secret of a new token, with what connects a client by it at once. */
import type { ComponentChildren } from 'preact'
import { request } from '../../api/request.ts'
import type { TokenRecord } from '../../api/routes.ts'
import { Dialog } from '../../parts/frame/dialog.tsx'
import { Skeleton, useLoaded } from '../../parts/loaded.tsx'
import { SecretLine, secretKept, useSecretWarning } from '../../parts/secret.tsx'
import { everyRecord } from '../catalog/record-options.ts'
import { ClientSetup } from './client-setup.tsx'
import { type MeasuredTarget, modelsWithin, type Records } from './usable-models.ts'

export type NewToken = Pick<TokenRecord, 'id' | 'roles' | 'bindings' | 'access_policy_ids'> & { token_value: string }

/** The secret of a new token, with what connects a client by it at once. */
export function TokenSecret({ token }: { token: NewToken }) {
  useSecretWarning()
  const callsModels = token.roles.some((role) => role !== 'auditor' && role !== 'runtime')
  return (
    <div class="stack">
      <p>
        <strong>This is shown once.</strong> Keep it where you keep secrets. Only its hash is stored: nobody can show it
        to you again. If it is lost, rotate the token.
      </p>
      <SecretLine secret={token.token_value} what="Token" />
      {callsModels ? <Examples token={token} /> : <p class="quiet">A token of this role calls no model.</p>}
    </div>
  )
}

const noRecords: Records = { models: [], providers: [], policies: [], targets: [] }

async function readRecords(token: NewToken): Promise<Records> {
  const [models, providers, policies, { targets }] = await Promise.all([
    everyRecord('/v1/catalog/models'),
    everyRecord('/v1/catalog/providers'),
    token.access_policy_ids.length === 0 ? [] : everyRecord('/v1/access-policies'),
    request<{ targets: MeasuredTarget[] }>('GET', '/v1/catalog/targets'),
  ])
  return { models, providers, policies, targets }
}

/** Where the catalog cannot be read, the person names a model. */
function Examples({ token }: { token: NewToken }) {
  const found = useLoaded(`usable models ${token.id}`, () => readRecords(token))
  if (found.loading) return <Skeleton rows={4} />
  return (
    <ClientSetup
      secret={token.token_value}
      modelsFor={(language) => modelsWithin(token, found.value ?? noRecords, language)}
    />
  )
}

interface SecretDialogProps {
  title: string
  token: NewToken
  /** Where one goes on; absent: where one was. */
  to?: string
  close(): void
  children?: ComponentChildren
}

/** A new secret over the screen it was made on; nothing but its own button closes it. */
export function SecretDialog({ title, token, to, close, children }: SecretDialogProps) {
  const kept = () => {
    secretKept()
    close()
  }
  const words = 'I have saved it'
  return (
    <Dialog title={title} stays close={close}>
      <TokenSecret token={token} />
      {children}
      <div class="row end">
        {to === undefined ? (
          <button type="button" class="primary" onClick={kept}>
            {words}
          </button>
        ) : (
          <a class="button primary" href={to} onClick={kept}>
            {words}
          </a>
        )}
      </div>
    </Dialog>
  )
}
