// A program to be run as a stdio target of the gateway: an MCP server whose flags and tools are its faults.
//   --name NAME      in serverInfo and in every tool's answer
//   --pages N        tools/list, prompts/list and resources/list have N pages of one item
//   --tools-only     knows no prompts and resources: -32601
//   --dies           ends before it answers anything
//   --mute           answers nothing
import { createInterface } from 'node:readline'

const flag = (name) => process.argv.includes(name)
const option = (name, otherwise) => {
  const index = process.argv.indexOf(name)
  return index < 0 ? otherwise : process.argv[index + 1]
}
const name = option('--name', 'program')
const pages = Number(option('--pages', '1'))
const toolsOnly = flag('--tools-only')

if (flag('--dies')) {
  process.stderr.write('will not live\n')
  process.exit(7)
}

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const text = (value) => ({ content: [{ type: 'text', text: value }] })
const toolNames = [
  'whoami',
  'pid',
  'crash',
  'hang',
  'garbage',
  'flood',
  'slow',
  'wrong-id',
  'big',
  'args',
  'cancellations',
  'steps',
]
const hanging = new Set()
let cancelled = 0

function page(key, items, cursor) {
  const index = cursor === undefined ? 0 : Number(cursor)
  const next = index + 1 < pages ? { nextCursor: String(index + 1) } : {}
  return { [key]: items(index), ...next }
}

const tool = (toolName) => ({ name: toolName, description: toolName, inputSchema: { type: 'object' } })

const lists = {
  'tools/list': (cursor) =>
    page('tools', (index) => (index === 0 ? toolNames.map(tool) : [tool(`page-${index}`)]), cursor),
  'prompts/list': (cursor) => page('prompts', (index) => [{ name: `prompt-${index}` }], cursor),
  'resources/list': (cursor) =>
    page('resources', (index) => [{ uri: `mem://${name}/${index}`, name: `resource ${index}` }], cursor),
  'resources/templates/list': (cursor) => page('resourceTemplates', () => [], cursor),
}

function initialize(id, params) {
  const capabilities = toolsOnly ? { tools: {} } : { tools: {}, prompts: {}, resources: {} }
  const { protocolVersion } = params
  say({ id, result: { protocolVersion, capabilities, serverInfo: { name, version: '1' } } })
}

function call(id, { name: asked, arguments: args, _meta: meta }) {
  switch (asked) {
    case 'whoami':
      return say({ id, result: text(name) })
    case 'pid':
      return say({ id, result: text(String(process.pid)) })
    case 'args':
      return say({ id, result: text(JSON.stringify(args)) })
    case 'crash':
      process.stderr.write('crashing as asked\n')
      return process.exit(3)
    case 'hang':
      return hanging.add(id)
    case 'cancellations':
      return say({ id, result: text(String(cancelled)) })
    case 'steps': {
      const { progressToken } = meta ?? {}
      for (let progress = 1; progress <= args.count; progress += 1) {
        say({ method: 'notifications/progress', params: { progressToken, progress } })
      }
      return say({ id, result: text(`${args.mark}`) })
    }
    case 'garbage':
      process.stdout.write('this is no message\n{"jsonrpc": \n[]\n"text"\n')
      return say({ id, result: text('after the garbage') })
    case 'flood':
      return setInterval(() => process.stdout.write('x'.repeat(1024 * 1024)), 1)
    case 'slow':
      return setTimeout(() => say({ id, result: text('at last') }), args?.ms ?? 500)
    case 'wrong-id':
      say({ id: `${id}-of-nobody`, result: text('for nobody') })
      return say({ id, result: text('for you') })
    case 'big':
      return say({ id, result: text('b'.repeat(args?.bytes ?? 1024 * 1024)) })
    default:
      return say({ id, error: { code: -32602, message: `Unknown tool: ${asked}` } })
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line)
  if (method === 'notifications/cancelled' && hanging.delete(params.requestId)) cancelled += 1
  if (id === undefined || method === undefined || flag('--mute')) return
  const list = lists[method]
  if (method === 'initialize') initialize(id, params)
  else if (method === 'ping') say({ id, result: {} })
  else if (method === 'tools/call') call(id, params)
  else if (list !== undefined && !(toolsOnly && method !== 'tools/list'))
    say({ id, result: list(params.cursor) })
  else if (method === 'resources/read' && !toolsOnly)
    say({ id, result: { contents: [{ uri: params.uri, text: `${name} has ${params.uri}` }] } })
  else if (method === 'prompts/get' && !toolsOnly)
    say({
      id,
      result: { messages: [{ role: 'user', content: { type: 'text', text: `${name} ${params.name}` } }] },
    })
  else say({ id, error: { code: -32601, message: 'Method not found' } })
})
