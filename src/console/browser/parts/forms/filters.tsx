/** Filters as chips; each is a member of the address's query. */
import { useRef, useState } from 'preact/hooks'
import { queryValue, setQuery } from '../../address.ts'
import { humanize } from '../../formats.ts'
import { Icon } from '../icon.tsx'
import { useLoaded } from '../loaded.tsx'
import type { Finder, Options } from './choice.tsx'
import { Suggestions } from './field.tsx'

export interface Filter {
  /** The query's member. */
  name: string
  label: string
  /** What can be chosen; absent: text to type. */
  options?: readonly (string | readonly [value: string, label: string])[]
  /** Names that the browser offers for what is typed; anything else may be typed too. */
  suggest?: (typed: string) => Promise<readonly string[]>
  /** Suggestions are asked for again with each letter, since there are too many to read at once. */
  searched?: boolean
  /** Finds records by their names, of which the address has the id; for lists that are too long for `options`. */
  finder?: Finder | undefined
  /** What holds where the address says nothing, instead of any. */
  usual?: string
}

interface Props {
  filters: readonly Filter[]
  /** Members of the query that hold for what was found before, such as which of it is open. */
  drops?: readonly string[]
}

export const Filters = ({ filters, drops = [] }: Props) => (
  // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a row in every browser
  <div class="filters" role="group" aria-label="Filters">
    {filters.map(({ finder, ...filter }) =>
      finder === undefined ? (
        <Chip key={filter.name} {...filter} drops={drops} />
      ) : (
        <FoundChip key={filter.name} {...filter} finder={finder} drops={drops} />
      ),
    )}
  </div>
)

function Chip({
  name,
  label,
  options,
  usual,
  drops,
  suggest,
  searched = false,
}: Omit<Filter, 'finder'> & { drops: readonly string[] }) {
  const value = queryValue(name) ?? ''
  const id = `filter-${name}`
  /** What is typed and not taken yet: the screen may be drawn anew meanwhile, for newer rows. */
  const [typed, setTyped] = useState<string | null>(null)
  const [offered, setOffered] = useState<readonly string[]>([])
  const set = (text: string | null) => {
    setTyped(null)
    setQuery({ ...Object.fromEntries(drops.map((dropped) => [dropped, null])), [name]: text })
  }
  const take = (event: { currentTarget: HTMLSelectElement | HTMLInputElement }) => set(event.currentTarget.value.trim())
  /** A person without the permission to read the names types them. */
  const offer = (text: string) => suggest?.(text).then(setOffered, () => undefined)
  return (
    <span class={`chip ${value === '' ? '' : 'on'}`}>
      <label for={id}>{label}</label>
      {options === undefined ? (
        <input
          id={id}
          value={typed ?? value}
          placeholder="any"
          list={suggest === undefined ? undefined : `${id}-list`}
          onFocus={(event) => offer(event.currentTarget.value)}
          onInput={(event) => {
            setTyped(event.currentTarget.value)
            if (searched) offer(event.currentTarget.value)
          }}
          onChange={take}
          onBlur={() => setTyped(null)}
        />
      ) : (
        <select id={id} value={value === '' ? (usual ?? '') : value} onChange={take}>
          {usual === undefined && <option value="">any</option>}
          {options.map((option) => {
            const [key, text] = typeof option === 'string' ? [option, humanize(option)] : option
            return (
              <option value={key} key={key}>
                {text}
              </option>
            )
          })}
        </select>
      )}
      {suggest !== undefined && <Suggestions id={`${id}-list`} of={offered} />}
      {value !== '' && (
        <button type="button" aria-label={`Clear ${label.toLowerCase()}`} onClick={() => set(null)}>
          <Icon name="close" />
        </button>
      )}
    </span>
  )
}

const searchMs = 10_000

interface FoundProps extends Pick<Filter, 'name' | 'label'> {
  finder: Finder
  drops: readonly string[]
}

/** A record by its name: the browser offers those whose names have what is typed. */
function FoundChip({ name, label, finder, drops }: FoundProps) {
  const value = queryValue(name) ?? ''
  const id = `filter-${name}`
  const [typed, setTyped] = useState<string | null>(null)
  const [offered, setOffered] = useState<Options>([])
  const chosen = useLoaded(`${name} ${value}`, async (signal) =>
    value === '' ? [] : await finder.named([value], signal),
  )
  const shown = [...(chosen.value ?? []), ...offered].find(([one]) => one === value)?.[1] ?? ''
  const set = (record: string | null) => {
    setTyped(null)
    setQuery({ ...Object.fromEntries(drops.map((dropped) => [dropped, null])), [name]: record })
  }
  const latest = useRef('')
  const idOf = (text: string, among: Options) => among.find(([, called]) => called === text)?.[0]
  const offer = async (text: string): Promise<void> => {
    const found = await finder.search(text, AbortSignal.timeout(searchMs)).catch(() => [])
    if (latest.current !== text) return
    setOffered(found)
    // A whole name may be typed before the search that offers it has answered.
    const meant = text === '' ? undefined : idOf(text, found)
    if (meant !== undefined) set(meant)
  }
  const type = (text: string) => {
    latest.current = text
    const meant = idOf(text, offered)
    if (meant !== undefined) return set(meant)
    if (text === '') set(null)
    else setTyped(text)
    void offer(text)
  }
  return (
    <span class={`chip ${value === '' ? '' : 'on'}`}>
      <label for={id}>{label}</label>
      <input
        id={id}
        value={typed ?? shown}
        placeholder="any"
        list={`${id}-list`}
        onFocus={() => {
          latest.current = ''
          void offer('')
        }}
        onInput={({ currentTarget: { value: text } }) => type(text)}
        onBlur={() => setTyped(null)}
      />
      <Suggestions id={`${id}-list`} of={offered.map(([, called]) => called)} />
      {value !== '' && (
        <button type="button" aria-label={`Clear ${label.toLowerCase()}`} onClick={() => set(null)}>
          <Icon name="close" />
        </button>
      )}
    </span>
  )
}
