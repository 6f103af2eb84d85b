/**
 * Making a token: general governed ones only (gateway-runtime and integration tokens come from the command
 * line or the API). A role comes first: until it is chosen there is nothing else to fill in.
 */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { api } from '../../api/routes.ts'
import { linesOf } from '../../lines.ts'
import { OneOf } from '../../parts/forms/choice.tsx'
import { CheckField, RadioField, RequiredNote, SelectField, TextArea, TextField } from '../../parts/forms/field.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { askForSecret, secretKept } from '../../parts/secret.tsx'
import { useTeamOptions } from '../team-options.ts'
import { type Lists, Restrictions } from './token-restrictions.tsx'
import { type NewToken as MadeToken, TokenSecret } from './token-secret.tsx'

const roles = [
  {
    value: 'member',
    label: 'Member',
    hint: 'Calls the gateway; reads its own tokens and its team’s events. For applications.',
  },
  {
    value: 'auditor',
    label: 'Auditor',
    hint: 'Reads everything and exports events; changes nothing and calls no model.',
  },
  {
    value: 'operator',
    label: 'Operator',
    hint: 'Reads everything, calls the gateway, revokes tokens, decides escalations, changes policies and catalog.',
  },
  {
    value: 'admin',
    label: 'Admin',
    hint: 'All of that, and creates tokens and people. Assign it rarely and for a short time.',
  },
] as const
type ChosenRole = (typeof roles)[number]['value']

const classes = [
  { value: 'durable', label: 'Durable', hint: 'Valid until revoked or expired. For services.' },
  { value: 'virtual', label: 'Virtual', hint: 'Like durable, for a narrow use: some models, one provider.' },
  {
    value: 'disposable',
    label: 'Disposable',
    hint: 'Ends on its own: needs an expiry and a budget or a request limit.',
  },
] as const
type KeyClass = (typeof classes)[number]['value']

const expiries = [
  ['', 'Never'],
  ['3600', 'In 1 hour'],
  ['86400', 'In 1 day'],
  ['604800', 'In 7 days'],
  ['2592000', 'In 30 days'],
  ['7776000', 'In 90 days'],
  ['31536000', 'In 1 year'],
] as const

const noLists: Lists = { policy_ids: [], access_policy_ids: [] }

const empty = {
  name: '',
  team: '',
  provider: '',
  budgetId: '',
  models: '',
  expires: '7776000',
  budget: '',
  requests: '',
  rpm: '',
  tpm: '',
}
type Fields = typeof empty

const amount = (text: string): number | null => (text === '' ? null : Number(text))

interface Checks {
  trust: boolean
  search: boolean
}

const bodyOf = (fields: Fields, lists: Lists, role: ChosenRole, keyClass: KeyClass, { trust, search }: Checks) => ({
  name: fields.name,
  purpose: 'general' as const,
  key_class: keyClass,
  roles: [role],
  bindings: {
    ...(fields.team === '' ? {} : { team_id: fields.team }),
    ...(fields.provider === '' ? {} : { provider: fields.provider }),
    ...(fields.budgetId === '' ? {} : { budget_id: fields.budgetId }),
    ...(fields.models.trim() === '' ? {} : { model_filter: linesOf(fields.models) }),
  },
  policy_ids: [...lists.policy_ids],
  access_policy_ids: [...lists.access_policy_ids],
  metadata_trust: trust ? ('caller' as const) : ('none' as const),
  mcp_tools: search ? ('searched' as const) : ('listed' as const),
  max_budget: amount(fields.budget),
  max_requests: amount(fields.requests),
  rate_limit_rpm: amount(fields.rpm),
  rate_limit_tpm: amount(fields.tpm),
  expires_in_seconds: amount(fields.expires),
})

export function NewToken() {
  const [role, setRole] = useState<ChosenRole | ''>('')
  const [keyClass, setKeyClass] = useState<KeyClass>('durable')
  const [trust, setTrust] = useState(false)
  const [search, setSearch] = useState(false)
  const [fields, setFields] = useState<Fields>(empty)
  const [lists, setLists] = useState<Lists>(noLists)
  const [made, setMade] = useState<(MadeToken & { name: string }) | null>(null)
  const { busy, refusal, form } = useAction(
    () =>
      askForSecret(() =>
        api('POST /v1/tokens', {
          body: bodyOf(fields, lists, role === '' ? 'member' : role, keyClass, { trust, search }),
        }),
      ),
    setMade,
  )
  if (made !== null) {
    return (
      <>
        <PageHeader title={made.name} back={['/tokens', 'Tokens']} />
        <section class="card stack narrow">
          <h2>Token created</h2>
          <TokenSecret token={made} />
          <div class="row end">
            <a class="button primary" href={href(`/tokens/${made.id}`)} onClick={secretKept}>
              I have saved it
            </a>
          </div>
        </section>
      </>
    )
  }
  return (
    <>
      <PageHeader title="New token" back={['/tokens', 'Tokens']} />
      <form class="card form" {...form}>
        <RadioField<ChosenRole>
          label="Role"
          hint={role === '' ? 'Choose a role first.' : 'The permissions of the token.'}
          value={role}
          set={setRole}
          options={roles}
        />
        {role !== '' && (
          <>
            <RequiredNote />
            <TokenFields
              fields={fields}
              set={(changes) => setFields({ ...fields, ...changes })}
              keyClass={keyClass}
              setKeyClass={setKeyClass}
              fault={(param) => (refusal?.param?.endsWith(param) ? refusal.message : null)}
            />
            <Restrictions
              fields={fields}
              set={(changes) => setFields({ ...fields, ...changes })}
              lists={lists}
              setLists={setLists}
            />
            <CheckField
              label="Record caller metadata in events"
              hint="Only if you trust the application, because it can then write into your events."
              value={trust}
              set={setTrust}
            />
            <CheckField
              label="Find MCP tools by search"
              hint="The caller is shown two tools that find and call the others, instead of every definition."
              value={search}
              set={setSearch}
            />
            {refusal !== null && <ErrorNote refusal={refusal} />}
            <div class="row end">
              <a class="button" href={href('/tokens')}>
                Cancel
              </a>
              <button type="submit" class="primary" disabled={busy}>
                {busy ? 'Creating…' : 'Create token'}
              </button>
            </div>
          </>
        )}
      </form>
    </>
  )
}

interface FieldsProps {
  fields: Fields
  set(changes: Partial<Fields>): void
  keyClass: KeyClass
  setKeyClass(value: KeyClass): void
  fault(param: string): string | null
}

function TokenFields({ fields, set, keyClass, setKeyClass, fault }: FieldsProps) {
  const teams = useTeamOptions()
  const disposable = keyClass === 'disposable'
  return (
    <>
      <TextField
        label="Name"
        hint="For example, the name of the application"
        value={fields.name}
        set={(name) => set({ name })}
        required
        fault={fault('name')}
      />
      <RadioField<KeyClass> label="Class" value={keyClass} set={setKeyClass} options={classes} />
      <OneOf
        label="Team"
        hint="The team that owns its spend and events. Default: the team default."
        value={fields.team}
        set={(team) => set({ team })}
        options={teams.value ?? (teams.refusal === null ? null : [])}
        fault={fault('team_id')}
      />
      {teams.refusal !== null && <ErrorNote refusal={teams.refusal} retry={teams.retry} />}
      <TextArea
        label="Models"
        hint="One per line, * stands for anything. Empty: every model."
        value={fields.models}
        set={(models) => set({ models })}
        rows={2}
        mono
        placeholder="gpt-4o*"
        fault={fault('model_filter')}
      />
      <SelectField
        label="Expires"
        hint={disposable ? 'A disposable token needs an expiry.' : 'A short life is safer; rotate it to continue.'}
        value={fields.expires}
        set={(expires) => set({ expires })}
        options={expiries}
        fault={fault('expires_in_seconds')}
      />
      <div class="pair">
        <TextField
          label="Budget (USD)"
          type="number"
          min={0}
          step="any"
          hint="For its whole life. Requests that could exceed it are refused."
          value={fields.budget}
          set={(budget) => set({ budget })}
          fault={fault('max_budget')}
        />
        <TextField
          label="Requests"
          type="number"
          min={1}
          hint="For its whole life"
          value={fields.requests}
          set={(requests) => set({ requests })}
          fault={fault('max_requests')}
        />
        <TextField
          label="Requests per minute"
          type="number"
          min={1}
          value={fields.rpm}
          set={(rpm) => set({ rpm })}
          fault={fault('rate_limit_rpm')}
        />
        <TextField
          label="Tokens per minute"
          type="number"
          min={1}
          value={fields.tpm}
          set={(tpm) => set({ tpm })}
          fault={fault('rate_limit_tpm')}
        />
      </div>
    </>
  )
}
