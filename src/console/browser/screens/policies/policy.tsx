/** One policy: a form made from its kind's schema, and beside it what it would say. */

import { useRef, useState } from 'preact/hooks'
import { href, navigate, queryValue } from '../../address.ts'
import { bodySchema, type JsonSchema } from '../../api/description.ts'
import { api, type PolicyRecord } from '../../api/routes.ts'
import { humanize } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { Conflict } from '../../parts/forms/conflict.tsx'
import { CheckField, Legend, RadioField, RequiredNote, TextField } from '../../parts/forms/field.tsx'
import { type JsonObject, SchemaFields } from '../../parts/forms/schema-form.tsx'
import { Confirm, useAction } from '../../parts/frame/dialog.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { ErrorNote, Show, useLoaded } from '../../parts/loaded.tsx'
import { hasPermission } from '../../session.ts'
import { onlyChanges } from '../catalog/only-changes.ts'
import { useChoices } from '../catalog/record-options.ts'
import { ActivityCard } from './activity.tsx'
import { ChooseKind } from './choose-kind.tsx'
import { DryRun } from './dry-run.tsx'
import { PolicyState, readChain } from './policies.tsx'
import { bodyOf } from './policy-body.ts'
import { stageHint, stageLabel } from './stage-words.ts'
import { startingPoints } from './starting-points.ts'
import { Versions } from './versions.tsx'
import { WhenField } from './when-field.tsx'

interface Forms {
  /** Each kind's body, by its name. */
  kinds: ReadonlyMap<string, JsonSchema>
  chain: readonly PolicyRecord[]
}

async function readForms(signal: AbortSignal): Promise<Forms> {
  const [schema, chain] = await Promise.all([bodySchema('POST /v1/policies'), readChain(signal)])
  const kinds = (schema.oneOf ?? schema.anyOf ?? []).map(
    (kind) => [String(kind.properties?.kind?.const ?? ''), kind] as const,
  )
  return { kinds: new Map(kinds), chain }
}

export function NewPolicy() {
  const found = useLoaded('forms', readForms)
  const start = startingPoints.find(({ name }) => name === queryValue('start'))
  const kind = start?.body.kind ?? queryValue('kind')
  return (
    <>
      <PageHeader title="New policy" back={['/policies', 'Policies']} />
      <Show of={found} rows={8}>
        {(forms) =>
          kind === null || !forms.kinds.has(kind) ? (
            <ChooseKind kinds={forms.kinds} />
          ) : (
            <Editor key={`${kind} ${start?.name}`} kind={kind} record={null} start={start?.body} forms={forms} />
          )
        }
      </Show>
    </>
  )
}

export function PolicyScreen({ id }: { id: string }) {
  const found = useLoaded(id, (signal) => api('GET /v1/policies/{id}', { params: { id }, signal }))
  const forms = useLoaded('forms', readForms)
  const [deleting, setDeleting] = useState(false)
  /** How often somebody else's change was taken in the place of one's own: then the form begins anew. */
  const [takenOver, setTakenOver] = useState(0)
  const policy = found.value
  return (
    <>
      <PageHeader title={policy?.name ?? 'Policy'} back={['/policies', 'Policies']}>
        {policy !== undefined && <PolicyState policy={policy} />}
        {policy !== undefined && hasPermission('policies:write') && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete
          </button>
        )}
      </PageHeader>
      <Show of={found} rows={8}>
        {(record) => (
          <Show of={forms} rows={8}>
            {(known) => (
              <Editor
                key={`${record.id} ${takenOver}`}
                kind={record.kind}
                record={record}
                forms={known}
                saved={found.set}
                takeTheirs={(theirs) => {
                  found.set(theirs)
                  setTakenOver((before) => before + 1)
                }}
              />
            )}
          </Show>
        )}
      </Show>
      {deleting && policy !== undefined && (
        <Confirm
          title="Delete this policy"
          name={policy.name}
          action="Delete"
          close={() => setDeleting(false)}
          work={async () => {
            await api('DELETE /v1/policies/{id}', { params: { id } })
            showToast('Deleted')
            navigate(href('/policies'))
          }}
        >
          <p>Gateways stop applying it within seconds. A policy that an active token names cannot be deleted.</p>
        </Confirm>
      )}
    </>
  )
}

interface EditorProps {
  kind: string
  /** What a new one begins with; absent: nothing. */
  start?: JsonObject | undefined
  record: PolicyRecord | null
  forms: Forms
  saved?(record: PolicyRecord): void
  takeTheirs?(record: PolicyRecord): void
}

function Editor({ kind, record, start, forms, saved, takeTheirs }: EditorProps) {
  const schema = forms.kinds.get(kind)
  const choices = useChoices(schema?.properties?.targets ?? {})
  const stages = schema?.properties?.stages?.items?.enum?.map(String) ?? []
  const before = record === null ? {} : bodyOf(record)
  const [body, setBody] = useState<JsonObject>(
    record === null ? (start ?? { name: '', kind, stages: stages.slice(0, 1), config: {} }) : before,
  )
  const set = (name: string) => (value: unknown) => setBody((now) => ({ ...now, [name]: value }))
  /** The version that a change is made over: a newer one, once it was looked at. */
  const version = useRef(record?.version ?? 0)
  const sent = useRef(body)
  const [taken, setTaken] = useState(0)
  const { run, busy, refusal, form } = useAction(
    () => {
      sent.current = body
      if (record === null) return api('POST /v1/policies', { body })
      const params = { id: record.id }
      return api('PATCH /v1/policies/{id}', { params, body: onlyChanges(before, body), ifMatch: version.current })
    },
    (made) => {
      showToast(
        record === null ? 'Created; gateways apply it within seconds' : 'Saved; gateways apply it within seconds',
      )
      if (record === null) return navigate(href(`/policies/${made.id}`))
      version.current = made.version
      // What was typed while it was saved is kept, for the next saving.
      setBody((now) => (now === sent.current ? bodyOf(made) : now))
      saved?.(made)
    },
  )
  /** Puts another version into the form; its fields are made anew, for some keep what is typed. */
  const take = (version: JsonObject) => {
    setBody(version)
    setTaken((times) => times + 1)
    showToast('The version is in the form. Save it to apply it')
  }
  if (schema === undefined) return <p class="note warn">This version has no policy kind {kind}.</p>
  const fault = (param: string) => (refusal?.param?.startsWith(param) ? refusal.message : null)
  const chosen = Array.isArray(body.stages) ? body.stages.map(String) : []
  return (
    <div class="sides">
      <form key={taken} class="card form" {...form}>
        <p class="quiet">
          <strong>{humanize(kind)}.</strong> {schema.description}
        </p>
        <RequiredNote />
        <TextField label="Name" value={String(body.name ?? '')} set={set('name')} required fault={fault('name')} />
        <Stages stages={stages} chosen={chosen} set={set('stages')} />
        <SchemaFields
          schema={schema.properties?.config ?? {}}
          path="config"
          value={isObject(body.config) ? body.config : {}}
          set={set('config')}
          refusal={refusal}
        />
        <WhenField
          body={body}
          required={kind === 'condition' || kind === 'escalate'}
          set={set('when')}
          fault={fault('when')}
        />
        <EnforcementFields body={body} set={set} />
        <details>
          <summary>Targets</summary>
          <div class="stack">
            <SchemaFields
              schema={schema.properties?.targets ?? {}}
              path="targets"
              value={isObject(body.targets) ? body.targets : {}}
              set={set('targets')}
              choices={choices.value}
              refusal={refusal}
            />
            {choices.refusal !== null && <ErrorNote refusal={choices.refusal} retry={choices.retry} />}
          </div>
        </details>
        {refusal !== null && record !== null && (
          <Conflict
            refusal={refusal}
            read={() => api('GET /v1/policies/{id}', { params: { id: record.id } })}
            fieldsOf={bodyOf}
            mine={onlyChanges(before, body)}
            saveMine={(theirs) => {
              version.current = theirs.version
              run()
            }}
            takeTheirs={(theirs) => takeTheirs?.(theirs)}
          />
        )}
        {refusal !== null && record === null && <ErrorNote refusal={refusal} />}
        {hasPermission('policies:write') && (
          <div class="row end">
            <a class="button" href={href('/policies')}>
              Cancel
            </a>
            <button type="submit" class="primary" disabled={busy}>
              {record === null ? 'Create policy' : 'Save'}
            </button>
          </div>
        )}
      </form>
      <div class="stack">
        {record !== null && <ActivityCard policyId={record.id} name={record.name} />}
        <DryRun record={record} body={body} chain={forms.chain} />
        {record !== null && hasPermission('events:read') && <Versions record={record} take={take} />}
      </div>
    </div>
  )
}

const Stages = ({
  stages,
  chosen,
  set,
}: {
  stages: readonly string[]
  chosen: readonly string[]
  set(value: string[]): void
}) => (
  <fieldset class="field">
    <Legend required>Stages</Legend>
    {stages.map((stage) => (
      <CheckField
        key={stage}
        label={stageLabel(stage)}
        hint={stageHint(stage)}
        value={chosen.includes(stage)}
        set={(on) => set(stages.filter((one) => (one === stage ? on : chosen.includes(one))))}
      />
    ))}
  </fieldset>
)

/** Whether it is applied, and what becomes of a request that it cannot decide about. */
const EnforcementFields = ({ body, set }: { body: JsonObject; set(name: string): (value: unknown) => void }) => (
  <>
    <RadioField
      label="Mode"
      value={String(body.mode ?? 'enforce')}
      set={set('mode')}
      options={[
        { value: 'enforce', label: 'Enforce', hint: 'The verdict is applied.' },
        {
          value: 'monitor',
          label: 'Monitor',
          hint: 'The verdict is only recorded, to try the policy on real traffic.',
        },
      ]}
    />
    <RadioField
      label="If it fails"
      value={String(body.when_broken ?? 'deny')}
      set={set('when_broken')}
      options={[
        { value: 'deny', label: 'Deny', hint: 'A request that it cannot evaluate is refused.' },
        { value: 'allow', label: 'Allow', hint: 'The request continues as without the policy.' },
      ]}
    />
    <CheckField
      label="Enabled"
      hint="If off, the policy is stored but not applied."
      value={body.enabled !== false}
      set={set('enabled')}
    />
  </>
)
