import { queryValue } from '../../address.ts'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Tabs } from '../../parts/frame/tabs.tsx'
import { catalogKinds } from './catalog-kinds.tsx'
import { Records } from './records.tsx'
import { TargetsInUse } from './target-health.tsx'

const tabs = catalogKinds.map(({ name, title }) => [name, title] as const)

/** Who answers, what can be asked for, and what bounds it. */
export function Catalog() {
  const kind = catalogKinds.find(({ name }) => name === queryValue('kind')) ?? catalogKinds[0]
  if (kind === undefined) throw new Error('The catalog has no kinds')
  return (
    <>
      <PageHeader title="Catalog" />
      <Tabs label="Kinds of records" path="/catalog" name="kind" tabs={tabs} shown={kind.name} />
      <Records key={kind.name} kind={kind} />
      {(kind.name === 'providers' || kind.name === 'models') && <TargetsInUse />}
    </>
  )
}
