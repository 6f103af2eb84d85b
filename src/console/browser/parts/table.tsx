/** A table of records: the header stays in view, numbers stand right, a row leads to its record, pages go by cursor. */
import type { ComponentChildren } from 'preact'
import { address, navigate, setQuery } from '../address.ts'
import { Skeleton } from './loaded.tsx'
import { userText } from './user-text.tsx'

export interface Column<Row> {
  title: string
  cell(row: Row): ComponentChildren
  /** Numbers. */
  right?: boolean
  /** Left out where there is little room: below 720 or 1100 pixels. */
  from?: 'wide' | 'wider'
  nowrap?: boolean
}

/** Rows can be chosen, to do something with all of them. */
export interface Choice<Row> {
  /** By their keys. */
  chosen: readonly string[]
  set(chosen: string[]): void
  nameOf(row: Row): string
  /** Whether a row can be chosen; absent: any. */
  mayChoose?(row: Row): boolean
}

interface TableProps<Row> {
  /** What it lists, for those who do not see it. */
  label: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  keyOf(row: Row): string
  /** Where a row leads; its first cell is the link. */
  linkOf?(row: Row): string | undefined
  mutedWhen?(row: Row): boolean
  selected?: string | null
  choice?: Choice<Row> | undefined
  empty: ComponentChildren
}

const classOf = ({ right, from, nowrap }: Pick<Column<never>, 'right' | 'from' | 'nowrap'>): string =>
  [right === true && 'right', from, nowrap === true && 'nowrap'].filter(Boolean).join(' ')

export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, keyOf, linkOf, mutedWhen, selected, choice, empty } = props
  if (rows.length === 0) return <>{empty}</>
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard (WCAG 2.1.1)
    <section class="table" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {choice !== undefined && (
              <th scope="col" style={{ width: '1px' }}>
                <ChooseAll rows={rows} keyOf={keyOf} choice={choice} />
              </th>
            )}
            {columns.map((column) => (
              <th scope="col" class={classOf(column)} key={column.title}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const to = linkOf?.(row)
            const muted = mutedWhen?.(row) === true
            return (
              <tr
                key={keyOf(row)}
                class={`${to === undefined ? '' : 'open'} ${muted ? 'muted' : ''}`}
                aria-selected={selected === keyOf(row) ? true : undefined}
                onClick={(event) => to !== undefined && openRow(event, to)}
              >
                {choice !== undefined && (
                  <td style={{ minWidth: 0 }}>
                    <ChooseOne row={row} name={keyOf(row)} choice={choice} />
                  </td>
                )}
                {columns.map((column, index) => (
                  <td class={classOf(column)} key={column.title}>
                    {index === 0 && to !== undefined ? (
                      <a class="main" href={to}>
                        {userText(column.cell(row))}
                      </a>
                    ) : (
                      userText(column.cell(row))
                    )}
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </section>
  )
}

const mayChoose = <Row,>(row: Row, choice: Choice<Row>): boolean => choice.mayChoose?.(row) ?? true

function ChooseAll<Row>({
  rows,
  keyOf,
  choice,
}: {
  rows: readonly Row[]
  keyOf(row: Row): string
  choice: Choice<Row>
}) {
  const all = rows.filter((row) => mayChoose(row, choice)).map(keyOf)
  const isAll = all.length > 0 && all.every((key) => choice.chosen.includes(key))
  return (
    <input
      type="checkbox"
      aria-label="Choose all"
      checked={isAll}
      disabled={all.length === 0}
      onChange={() => choice.set(isAll ? [] : all)}
    />
  )
}

function ChooseOne<Row>({ row, name, choice }: { row: Row; name: string; choice: Choice<Row> }) {
  const { chosen, set, nameOf } = choice
  return (
    <input
      type="checkbox"
      aria-label={`Choose ${nameOf(row)}`}
      checked={chosen.includes(name)}
      disabled={!mayChoose(row, choice)}
      onChange={({ currentTarget }) =>
        set(currentTarget.checked ? [...chosen, name] : chosen.filter((one) => one !== name))
      }
    />
  )
}

/** A click anywhere in a row opens it, unless it was on something of its own, or text was being selected. */
function openRow(event: MouseEvent, to: string): void {
  const target = event.target instanceof Element ? event.target : null
  if (target?.closest('a, button, input, select, dialog') != null || String(getSelection()) !== '') return
  navigate(to)
}

/** A card with a table in it, its states, and the way to the next page. */
export function TableCard<Row>({
  rows,
  next,
  note,
  ...table
}: Omit<TableProps<Row>, 'rows'> & {
  /** Undefined while they load; null where they did not come, which is said elsewhere. */
  rows: readonly Row[] | undefined | null
  next?: string | null | undefined
  note?: ComponentChildren
}) {
  if (rows === null) return null
  return (
    <div class="card flush">
      {rows === undefined ? <Skeleton rows={8} /> : <Table rows={rows} {...table} />}
      <Pager next={next ?? null} note={note} />
    </div>
  )
}

function Pager({ next, note }: { next: string | null; note: ComponentChildren }) {
  const later = address.value.query.has('cursor')
  if (next === null && !later && note === undefined) return null
  return (
    <div class="foot">
      <span>{note}</span>
      <span class="row">
        {later && (
          <button type="button" onClick={() => setQuery({ cursor: null })}>
            First page
          </button>
        )}
        {next !== null && (
          <button type="button" onClick={() => setQuery({ cursor: next }, { keepPage: true })}>
            Next page
          </button>
        )}
      </span>
    </div>
  )
}

/** Says what will appear here and what makes it happen. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="title">{title}</p>
    {children}
  </div>
)
