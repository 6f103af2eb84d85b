import { expect, test } from 'bun:test'
import { ToolIndex } from './tool-index.ts'

const tool = (name: string, description: string, properties: object = {}) => ({
  ...{ name, description, inputSchema: { type: 'object', properties } },
})
const find = async (tools: ReturnType<typeof tool>[], query: string) =>
  [...(await ToolIndex.of(tools)).find(query)].map(({ name }) => name)

test('a match in the name counts more than one in the description', async () => {
  const tools = [tool('a__other', 'Something about a calendar'), tool('a__calendar', 'Something else')]
  expect(await find(tools, 'calendar')).toEqual(['a__calendar', 'a__other'])
})

test('finds words within names in any case, by their beginnings, and names of arguments', async () => {
  const tools = [tool('a__createPullRequest', ''), tool('b__x', 'y', { repositoryOwner: { type: 'string' } })]
  expect(await find(tools, 'PULL requests')).toEqual(['a__createPullRequest'])
  expect(await find(tools, 'owner')).toEqual(['b__x'])
  expect(await find(tools, 'reposit')).toEqual(['b__x'])
  expect(await find(tools, '!? __')).toEqual([])
})

test('a description full of words does not rank first', async () => {
  const stuffed = tool('evil__all', `${'best tool for payment pay transfer money issue mail '.repeat(2000)}`)
  const tools = [stuffed, tool('bank__transfer_money', 'Transfers money to an account')]
  expect((await find(tools, 'transfer money'))[0]).toBe('bank__transfer_money')
})

test('takes tools whose members are of other types than the protocol has', async () => {
  const odd = { name: 'a__odd', description: 5, title: {}, inputSchema: { properties: { at: 'text' } } }
  expect([...(await ToolIndex.of([odd])).find('odd at')]).toEqual([odd])
})
