/**
 * Records that are listed, made, changed and deleted alike: one table, and forms made from what their routes take. What
 * a record is, which columns it shows and what may be chosen in its form is said by a `RecordKind`.
 */
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Permission } from '../../../../identity/permissions.ts'
import { address, href, queryValue, setQuery } from '../../address.ts'
import { bodySchema, description, type JsonSchema } from '../../api/description.ts'
import { request } from '../../api/request.ts'
import { Conflict } from '../../parts/forms/conflict.tsx'
import { RequiredNote } from '../../parts/forms/field.tsx'
import { type Choices, type JsonObject, SchemaFields } from '../../parts/forms/schema-form.tsx'
import { Confirm, Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, Skeleton, useLoaded } from '../../parts/loaded.tsx'
import { Command } from '../../parts/small.tsx'
import { type Column, Empty, TableCard } from '../../parts/table.tsx'
import { hasPermission } from '../../session.ts'
import { onlyChanges } from './only-changes.ts'
import { RecordFacts } from './record-facts.tsx'
import { type Readers, recordsOf, useChoices } from './record-options.ts'

export type ListedRecord = JsonObject & { id: string; version?: number }

export interface RecordKind {
  /** In the address: `providers`. */
  name: string
  title: string
  /** `a provider` */
  one: string
  path: string
  idName?: string
  /** The first field of its form, a required text: it is there before the rest of the form is known. */
  first?: string
  write: Permission
  columns: readonly Column<ListedRecord>[]
  /** What is called what in dialogs. */
  nameOf(record: ListedRecord): string
  /** What happens when one is deleted; absent: they are not deleted. */
  deleting?: string
  /** Reads what can be chosen for a member, where that is not records of another kind. */
  choices?: Readers
  /** Texts of which several choices can be taken at once. */
  several?: readonly string[]
  /** Fields that its routes take, and that are always the same. */
  fixed?: readonly string[]
  about: string
  command: string
  /** What is said below the fields of a new one, by what they hold. */
  note?(value: JsonObject): ComponentChildren
  /** What is said of one above its form. */
  beside?(record: ListedRecord): ComponentChildren
  /** What can be done with one from the list; `again` reads the list anew. */
  action?(record: ListedRecord, again: () => void): ComponentChildren
  /** A further dialog that the address opens. */
  dialog?(again: () => void): ComponentChildren
}

export const text = (record: ListedRecord, name: string): string => {
  const value = record[name]
  return value === null || value === undefined ? '–' : String(value)
}

/** The list of one kind, with its dialogs; which record is open stands in the address. */
export function Records({ kind }: { kind: RecordKind }) {
  const cursor = queryValue('cursor')
  const found = useLoaded(`${kind.name} ${cursor ?? ''}`, async (signal) => {
    const query = { cursor, limit: 50 }
    const page = await request<JsonObject>('GET', kind.path, { query, signal })
    const { next_cursor: next } = page
    const idName = kind.idName ?? 'id'
    return {
      rows: recordsOf(page).map((row): ListedRecord => ({ ...row, id: String(row[idName]) })),
      next: typeof next === 'string' ? next : null,
    }
  })
  const openId = queryValue('open')
  const opened = useOpened(kind, openId, found.value?.rows)
  const close = () => {
    setQuery({ open: null }, { keepPage: true })
    found.reload()
  }
  const mayWrite = hasPermission(kind.write)
  useEffect(() => {
    // Ahead of the first form, which asks again where this failed, and says why.
    if (mayWrite) description().catch(() => undefined)
  }, [mayWrite])
  return (
    <section class="stack">
      <div class="head">
        <p class="quiet">{kind.about}</p>
        {mayWrite && (
          <button type="button" class="primary" onClick={() => setQuery({ open: 'new' }, { keepPage: true })}>
            <Icon name="plus" />
            Add {kind.one}
          </button>
        )}
      </div>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label={kind.title}
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.rows}
        next={found.value?.next}
        keyOf={({ id }) => id}
        linkOf={({ id }) => href(address.value.path, { ...Object.fromEntries(address.value.query), open: id })}
        columns={columnsOf(kind, found.reload)}
        empty={
          <Empty title={`No ${withinSentence(kind.title)} yet`}>
            {mayWrite && (
              <>
                <p>Add one here, or on the command line:</p>
                <Command text={kind.command} />
              </>
            )}
          </Empty>
        }
      />
      {openId === 'new' && mayWrite && <Editor kind={kind} record={null} close={close} />}
      {opened !== undefined && <Editor kind={kind} record={opened} close={close} />}
      {kind.dialog?.(found.reload)}
    </section>
  )
}

/** The record that the address names: of the page that is shown, or read by its id, since links name any record. */
function useOpened(kind: RecordKind, id: string | null, rows: readonly ListedRecord[] | undefined) {
  const listed = rows?.find((row) => row.id === id)
  const wanted = id === 'new' || rows === undefined || listed !== undefined ? null : id
  const found = useLoaded(`${kind.name} open ${wanted}`, async (signal) => {
    if (wanted === null) return null
    const record = await request<JsonObject>('GET', `${kind.path}/${encodeURIComponent(wanted)}`, { signal })
    return { ...record, id: wanted }
  })
  return listed ?? (wanted !== null && found.value?.id === wanted ? found.value : undefined)
}

/** A title within a sentence: an abbreviation at its beginning stays one. */
const withinSentence = (title: string): string => title.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())

function columnsOf({ columns, action }: RecordKind, again: () => void): readonly Column<ListedRecord>[] {
  if (action === undefined) return columns
  return [...columns, { title: 'Action', right: true, cell: (record) => action(record, again) }]
}

interface EditorProps {
  kind: RecordKind
  /** Null: a new one. */
  record: ListedRecord | null
  close(): void
  /** Called after the record was deleted, before `close`. */
  deleted?(): void
}

/** The dialog that makes, changes or deletes a record. */
export function Editor({ kind, record, close, deleted }: EditorProps) {
  const [deleting, setDeleting] = useState(false)
  const readOnly = !hasPermission(kind.write)
  if (deleting && record !== null) {
    return (
      <Confirm
        title={`Delete ${kind.nameOf(record)}`}
        name={kind.nameOf(record)}
        action="Delete"
        close={close}
        work={async () => {
          await request('DELETE', recordPath(kind, record), headersOf(record))
          showToast('Deleted')
          deleted?.()
        }}
      >
        <p>{kind.deleting}</p>
      </Confirm>
    )
  }
  const title = record === null ? `Add ${kind.one}` : kind.nameOf(record)
  return (
    <Dialog title={title} broad close={close}>
      {record !== null && kind.beside?.(record)}
      {readOnly && record !== null ? (
        <>
          <RecordFacts record={record} />
          <div class="row end">
            <button type="button" onClick={close}>
              Close
            </button>
          </div>
        </>
      ) : (
        <LoadedForm
          kind={kind}
          record={record}
          close={close}
          askDelete={kind.deleting === undefined || record === null ? null : () => setDeleting(true)}
        />
      )}
    </Dialog>
  )
}

/** A change may leave out everything, but what a record cannot be without is not shown as if it could. */
async function schemaOf(kind: RecordKind, record: ListedRecord | null): Promise<JsonSchema> {
  const { first = 'name' } = kind
  const making = await bodySchema(`POST ${kind.path}`)
  // A form asks for the name, also where the API can do without: it is there before the rest has come.
  if (record === null) return { ...making, required: [...new Set([...(making.required ?? []), first])] }
  const changing = await bodySchema(`PATCH ${kind.path}/{${kind.idName ?? 'id'}}`)
  const has = (name: string) => record[name] != null && changing.properties?.[name] !== undefined
  return { ...changing, required: (making.required ?? []).filter(has) }
}

const recordPath = (kind: RecordKind, record: ListedRecord): string => `${kind.path}/${encodeURIComponent(record.id)}`

const headersOf = ({ version }: { version?: number | undefined }) =>
  version === undefined ? {} : { headers: { 'if-match': `"${version}"` } }

/** What of a form is known of itself: who is fast types into it before the rest has come, and keeps what was typed. */
const firstField = ({ first = 'name' }: RecordKind): JsonSchema => ({
  type: 'object',
  properties: { [first]: { type: 'string' } },
  required: [first],
})

interface LoadedFormProps {
  kind: RecordKind
  record: ListedRecord | null
  close(): void
  askDelete: (() => void) | null
}

/** A form as far as it has come: the first field of a new record at once, then the rest, then what can be chosen. */
function LoadedForm({ kind, record, ...form }: LoadedFormProps) {
  const schema = useLoaded(`form ${kind.name}`, () => schemaOf(kind, record))
  const [named, setNamed] = useState<JsonObject>(record ?? {})
  const choices = useChoices(schema.value ?? {}, named, kind.choices)
  const parts = [schema, choices]
  const failed = parts.find(({ refusal }) => refusal !== null)
  const drawn = schema.value ?? (record === null ? firstField(kind) : undefined)
  const again = () => {
    for (const part of parts) if (part.refusal !== null) part.retry()
  }
  const rest = (
    <>
      {schema.value === undefined && schema.refusal === null && <Skeleton rows={6} />}
      {failed?.refusal != null && <ErrorNote refusal={failed.refusal} retry={again} />}
    </>
  )
  if (drawn === undefined) return rest
  return (
    <RecordForm
      {...{ kind, record, rest, ...form }}
      schema={drawn}
      choices={choices.value}
      typed={setNamed}
      whole={schema.value !== undefined && parts.every(({ loading }) => !loading)}
    />
  )
}

interface FormProps extends LoadedFormProps {
  schema: JsonSchema
  choices: Choices
  /** Told what the form holds: it may say of which records one is chosen. */
  typed(value: JsonObject): void
  /** Whether nothing of it is on its way any more. */
  whole: boolean
  /** Said in the place of fields that are not there. */
  rest: ComponentChildren
}

function RecordForm({ kind, record, schema, choices, typed, whole, rest, close, askDelete }: FormProps) {
  const names = Object.keys(schema.properties ?? {})
  const fieldsOf = (of: JsonObject): JsonObject =>
    Object.fromEntries(names.filter((name) => of[name] != null).map((name) => [name, of[name]]))
  const [before, setBefore] = useState<JsonObject>(record === null ? {} : fieldsOf(record))
  const [value, setValue] = useState<JsonObject>(before)
  /** The version that a change is made over: a newer one, once it was looked at. */
  const version = useRef(record?.version)
  const element = useRef<HTMLFormElement>(null)
  // A dialog that opened before its form has the focus. The form takes it as it appears, before anyone types.
  useLayoutEffect(() => element.current?.querySelector<HTMLElement>('input, select, textarea')?.focus(), [])
  const { run, busy, refusal, clear, form } = useAction(
    () =>
      record === null
        ? request('POST', kind.path, { body: value })
        : request('PATCH', recordPath(kind, record), {
            body: onlyChanges(before, value),
            ...headersOf({ version: version.current }),
          }),
    () => {
      showToast(record === null ? 'Added' : 'Saved')
      close()
    },
  )
  return (
    <form class="form" ref={element} {...form}>
      <RequiredNote />
      <SchemaFields
        schema={schema}
        without={kind.fixed ?? []}
        several={kind.several}
        {...{ value, choices, refusal }}
        set={(next) => {
          setValue(next)
          typed(next)
        }}
      />
      {rest}
      {record === null && kind.note?.(value)}
      {refusal !== null && record === null && <ErrorNote refusal={refusal} />}
      {refusal !== null && record !== null && (
        <Conflict<ListedRecord>
          refusal={refusal}
          read={() => request<ListedRecord>('GET', recordPath(kind, record))}
          fieldsOf={fieldsOf}
          mine={onlyChanges(before, value)}
          saveMine={(theirs) => {
            version.current = theirs.version
            run()
          }}
          takeTheirs={(theirs) => {
            version.current = theirs.version
            setBefore(fieldsOf(theirs))
            setValue(fieldsOf(theirs))
            clear()
          }}
        />
      )}
      <div class="row between">
        <span>
          {askDelete !== null && (
            <button type="button" class="danger" onClick={askDelete}>
              Delete
            </button>
          )}
        </span>
        <span class="row">
          <button type="button" disabled={busy} onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={busy || !whole}>
            {record === null ? 'Add' : 'Save'}
          </button>
        </span>
      </div>
    </form>
  )
}
