import { href, queryValue } from '../address.ts'
import { Head } from '../parts/frame.tsx'
import { catalogKinds } from './catalog-kinds.tsx'
import { Records } from './records.tsx'

/** Who answers, what can be asked for, and what bounds it. */
export function Catalog() {
  const kind = catalogKinds.find(({ name }) => name === queryValue('kind')) ?? catalogKinds[0]
  if (kind === undefined) throw new Error('The catalog has no kinds')
  return (
    <>
      <Head title="Catalog" />
      <nav class="tabs" aria-label="Kinds of records">
        {catalogKinds.map(({ name, title }) => (
          <a key={name} href={href('/catalog', { kind: name })} aria-current={name === kind.name ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <Records key={kind.name} kind={kind} />
    </>
  )
}
