/** People, teams, and who is in which. */
import { useEffect, useState } from 'preact/hooks'
import { href, queryValue, setQuery } from '../address.ts'
import { request } from '../api/request.ts'
import { humanize } from '../formats.ts'
import { type Finder, OneOf, type Options } from '../parts/forms/choice.tsx'
import type { JsonObject } from '../parts/forms/schema-form.tsx'
import { Confirm, useAction } from '../parts/frame/dialog.tsx'
import { PageHeader } from '../parts/frame/frame.tsx'
import { Tabs } from '../parts/frame/tabs.tsx'
import { showToast } from '../parts/frame/toast.tsx'
import { Icon } from '../parts/icon.tsx'
import { ErrorNote, Show, useLoaded } from '../parts/loaded.tsx'
import { Time } from '../parts/small.tsx'
import { Empty, TableCard } from '../parts/table.tsx'
import { hasPermission } from '../session.ts'
import { AccessReview } from './access-review.tsx'
import { everyRecord, recordChoices } from './catalog/record-options.ts'
import { type RecordKind, Records, text } from './catalog/records.tsx'
import { Invite } from './invite.tsx'
import { RecordNames } from './record-name.tsx'

const Teams = ({ ids }: { ids: unknown }) => {
  const list = Array.isArray(ids) ? ids.map(String) : []
  return <>{list.length === 0 ? '–' : <RecordNames kind="teams" ids={list} />}</>
}

const users: RecordKind = {
  name: 'people',
  title: 'People',
  one: 'person',
  path: '/v1/users',
  write: 'members:write',
  nameOf: (record) => text(record, 'email'),
  about: 'People who can sign in. Disabling a person ends their sessions and approvals.',
  command: 'gatehouse user create --email mia@example.com --name Mia --role member',
  columns: [
    { title: 'Name', cell: (record) => text(record, 'name') },
    { title: 'E-mail address', cell: (record) => text(record, 'email'), from: 'wide' },
    { title: 'Role', cell: (record) => humanize(text(record, 'role')) },
    { title: 'Teams', cell: ({ team_ids }) => <Teams ids={team_ids} />, from: 'wide' },
    {
      title: 'State',
      cell: ({ status }) => (
        <span class="badge" data-verdict={status === 'active' ? 'allow' : 'error'}>
          <Icon name={status === 'active' ? 'allow' : 'block'} />
          {humanize(String(status))}
        </span>
      ),
    },
    { title: 'Password', cell: ({ has_password }) => (has_password === true ? 'Set' : 'None'), from: 'wider' },
  ],
  action: (record) =>
    hasPermission('members:write') && record.has_password === false && record.status === 'active' ? (
      <Invite id={record.id} email={text(record, 'email')} />
    ) : null,
}

const teams: RecordKind = {
  name: 'teams',
  title: 'Teams',
  one: 'team',
  path: '/v1/teams',
  write: 'members:write',
  nameOf: (record) => text(record, 'name'),
  deleting: 'Only a team without tokens, budgets and members can be deleted.',
  about: 'Teams own spend, events and tokens.',
  command: "gatehouse team create --name 'Checkout'",
  columns: [
    { title: 'Name', cell: (record) => text(record, 'name') },
    {
      title: 'Created',
      from: 'wide',
      cell: ({ created_at }) => <Time at={typeof created_at === 'string' ? created_at : null} />,
    },
    {
      title: 'Members',
      right: true,
      cell: ({ id }) => <a href={href('/people', { kind: 'members', team: id })}>Members</a>,
    },
  ],
}

const providers: RecordKind = {
  name: 'providers',
  title: 'Identity providers',
  one: 'identity provider',
  path: '/v1/identity-providers',
  write: 'members:write',
  nameOf: (record) => text(record, 'name'),
  deleting: 'The sessions of its people end, and nobody can sign in by it.',
  about: 'Where people sign in by OpenID Connect. Only an owner can change them.',
  command:
    'gatehouse identity-provider create --name Acme --issuer https://id.example.com --client-id gatehouse --client-secret-env SECRET',
  columns: [
    { title: 'Name', cell: (record) => text(record, 'name') },
    { title: 'Issuer', cell: (record) => text(record, 'issuer'), from: 'wide' },
    { title: 'In use', cell: ({ enabled }) => (enabled === true ? 'Yes' : 'No') },
    { title: 'Redirect URI', cell: (record) => <code>{text(record, 'redirect_uri')}</code>, from: 'wider' },
  ],
}

const kinds: Readonly<Record<string, RecordKind>> = { people: users, teams, providers }

const tabs = [
  ['people', 'People'],
  ['teams', 'Teams'],
  ['members', 'Members'],
  ['providers', 'Identity providers'],
  ['review', 'Access review'],
] as const

export function People() {
  const kind = queryValue('kind') ?? 'people'
  return (
    <>
      <PageHeader title="People" />
      <Tabs label="People and teams" path="/people" name="kind" tabs={tabs} shown={kind} />
      {kind === 'members' ? (
        <Members />
      ) : kind === 'review' ? (
        <AccessReview />
      ) : (
        <Records key={kind} kind={kinds[kind] ?? users} />
      )}
    </>
  )
}

function Members() {
  const found = useLoaded('teams', () => recordChoices('/v1/teams', 'id'))
  return (
    <Show of={found} rows={8}>
      {(teams) => <MembersOfOne teams={teams} />}
    </Show>
  )
}

/** The members of the team that is chosen, or else of the first. */
function MembersOfOne({ teams }: { teams: Options | Finder }) {
  const [first] = 'search' in teams ? [] : teams
  const team = queryValue('team') ?? first?.[0] ?? null
  /** What the field holds: nothing while what is typed names no team. The address keeps the last team until then. */
  const [chosen, setChosen] = useState(team ?? '')
  useEffect(() => setChosen(team ?? ''), [team])
  const choose = (id: string) => {
    setChosen(id)
    if (id !== '' && id !== team) setQuery({ team: id })
  }
  if (team === null && !('search' in teams)) return <NoTeam />
  return (
    <section class="stack">
      <div class="card form">
        <OneOf label="Team" options={teams} value={chosen} set={choose} required />
      </div>
      {team !== null && <MembersOf key={team} team={team} />}
    </section>
  )
}

const NoTeam = () => (
  <div class="card flush">
    <Empty title="No team yet">
      {hasPermission('members:write') && (
        <p>
          Make <a href={href('/people', { kind: 'teams' })}>a team</a> first; then people can join it.
        </p>
      )}
    </Empty>
  </div>
)

function MembersOf({ team }: { team: string }) {
  const found = useLoaded(`members ${team}`, (signal) => everyRecord(`/v1/teams/${team}/members`, signal))
  const [leaving, setLeaving] = useState<JsonObject | null>(null)
  return (
    <>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="Members"
        rows={found.value === undefined && found.refusal !== null ? null : found.value}
        keyOf={({ user_id }) => String(user_id)}
        columns={[
          { title: 'Name', cell: ({ name }) => String(name) },
          { title: 'E-mail address', cell: ({ email }) => String(email), from: 'wide' },
          { title: 'Role', cell: ({ role }) => humanize(String(role)) },
          {
            title: 'Action',
            right: true,
            cell: (member) =>
              hasPermission('members:write') ? (
                <button type="button" class="danger" onClick={() => setLeaving(member)}>
                  Remove
                </button>
              ) : null,
          },
        ]}
        empty={
          <Empty title="This team has no members">
            <p>Members see its events and can have tokens that are bound to it.</p>
          </Empty>
        }
      />
      {leaving !== null && (
        <Confirm
          title="Remove a member"
          name={String(leaving.email)}
          action="Remove"
          close={() => setLeaving(null)}
          work={async () => {
            await request('DELETE', `/v1/teams/${team}/members/${leaving.user_id}`)
            showToast('Removed')
            found.reload()
          }}
        >
          <p>Tokens that are bound to both this person and this team are revoked.</p>
        </Confirm>
      )}
      {hasPermission('members:write') && <AddMember team={team} added={found.reload} />}
    </>
  )
}

function AddMember({ team, added }: { team: string; added(): void }) {
  const [user, setUser] = useState('')
  const people = useLoaded('users', () => recordChoices('/v1/users', 'id'))
  const { busy, refusal, form } = useAction(
    () => request('POST', `/v1/teams/${team}/members`, { body: { user_id: user } }),
    () => {
      setUser('')
      showToast('Added')
      added()
    },
  )
  return (
    <form class="card form" {...form}>
      <OneOf
        label="Add a member"
        value={user}
        set={setUser}
        options={people.value ?? (people.refusal === null ? null : [])}
        required
      />
      {people.refusal !== null && <ErrorNote refusal={people.refusal} retry={people.retry} />}
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <div class="row">
        <button type="submit" disabled={busy || user === ''}>
          Add
        </button>
      </div>
    </form>
  )
}
