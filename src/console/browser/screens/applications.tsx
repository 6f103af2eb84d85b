/** Applications of others that may ask people to be let in: OAuth clients, public, by code and PKCE or by device code. */
import { useState } from 'preact/hooks'
import { request } from '../api/request.ts'
import { api, type DelegableScope } from '../api/routes.ts'
import { installation } from '../installation.ts'
import { Confirm, useAction } from '../parts/frame/dialog.tsx'
import { PageHeader } from '../parts/frame/frame.tsx'
import { showToast } from '../parts/frame/toast.tsx'
import { Icon } from '../parts/icon.tsx'
import { ErrorNote } from '../parts/loaded.tsx'
import { Id, Time } from '../parts/small.tsx'
import { hasPermission } from '../session.ts'
import { type ListedRecord, type RecordKind, Records, text } from './catalog/records.tsx'

const isActive = ({ status }: ListedRecord): boolean => status === 'active'

function Switch({ client, again }: { client: ListedRecord; again(): void }) {
  const active = isActive(client)
  const [asked, setAsked] = useState(false)
  const change = async () => {
    await request('POST', `/v1/oauth/clients/${client.id}/${active ? 'deactivate' : 'activate'}`, { body: {} })
    showToast(active ? 'Deactivated' : 'Active again')
    again()
  }
  const activation = useAction(change, () => undefined)
  return (
    <>
      <button
        type="button"
        class={active ? 'danger' : ''}
        disabled={activation.busy}
        onClick={() => (active ? setAsked(true) : activation.run())}
      >
        {active ? 'Deactivate' : 'Activate'}
      </button>
      {activation.refusal !== null && <ErrorNote refusal={activation.refusal} />}
      {asked && (
        <Confirm
          title="Deactivate this application"
          name={text(client, 'client_name')}
          action="Deactivate"
          close={() => setAsked(false)}
          work={change}
        >
          <p>
            It can ask nobody any more and its refresh tokens stop. Access tokens it has now live to their end, within
            the hour: revoke them apart if they must not.
          </p>
        </Confirm>
      )}
    </>
  )
}

const scopeChoice = ({ scope, sentence, active }: DelegableScope) =>
  [scope, scope, active ? sentence : `Not in use at this installation. ${sentence}`] as const

const clients: RecordKind = {
  name: 'clients',
  title: 'Applications',
  one: 'application',
  path: '/v1/oauth/clients',
  idName: 'client_id',
  write: 'oauth-clients:write',
  nameOf: (record) => text(record, 'client_name'),
  about: `They send people to ${installation.base_url}${installation.path}/oauth/authorize, where each decides.`,
  command:
    'gatehouse oauth-client create --name "Notebook" --redirect-uri https://notebook.example.com/callback --scope gateway:invoke',
  first: 'client_name',
  choices: { scope: async () => (await api('GET /v1/oauth/scopes', {})).scopes.map(scopeChoice) },
  several: ['scope'],
  fixed: ['response_types', 'token_endpoint_auth_method'],
  action: (record, again) => (hasPermission('oauth-clients:write') ? <Switch client={record} again={again} /> : null),
  columns: [
    { title: 'Name', cell: (record) => text(record, 'client_name') },
    {
      title: 'State',
      nowrap: true,
      cell: (record) => (
        <span class="badge" data-verdict={isActive(record) ? 'allow' : 'error'}>
          <Icon name={isActive(record) ? 'allow' : 'block'} />
          {isActive(record) ? 'Active' : 'Deactivated'}
        </span>
      ),
    },
    { title: 'Scopes', cell: (record) => <code>{text(record, 'scope')}</code>, from: 'wide' },
    {
      title: 'Redirects to',
      cell: ({ redirect_uris: uris }) => (Array.isArray(uris) ? uris.join(', ') : '–'),
      from: 'wider',
    },
    { title: 'Client id', cell: ({ id }) => <Id id={id} what="Client id" short />, from: 'wide' },
    {
      title: 'Registered',
      from: 'wider',
      nowrap: true,
      cell: ({ client_id_issued_at: at }) => (
        <Time at={typeof at === 'number' ? new Date(at * 1000).toISOString() : null} />
      ),
    },
  ],
}

export const Applications = () => (
  <>
    <PageHeader title="Applications" />
    <Records kind={clients} />
  </>
)
