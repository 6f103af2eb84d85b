/** Reads a list to its end, for choices and names: no record is missing because it stands on a later page. */

/** The most that the API gives on one page (api/page.ts). */
const recordsOfPage = 100

type Asked = {
  limit: number
  cursor: string | null
}

/** The items of each page, in order. `read` asks for one page; its refusal is thrown. */
export async function everyPage<Page extends { next_cursor: string | null }, Item>(
  read: (page: Asked) => Promise<Page>,
  itemsOf: (page: Page) => readonly Item[],
): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const page: Page = await read({ limit: recordsOfPage, cursor })
    items.push(...itemsOf(page))
    cursor = page.next_cursor
  } while (cursor !== null)
  return items
}
