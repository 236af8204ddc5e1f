import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A request of an example configuration, with the expected status and a part of the expected body. */
type ExampleCall = { method: string; path: string; body?: string; status: number; contains?: string }

/** A configuration in the shapes of agentgateway, from `gateway/test/golden/configurations`. */
export type ExampleConfiguration = {
  /** Topic and first comment: `routes: a path prefix`. */
  name: string
  text: string
  /** Undefined for a configuration that is only loaded. */
  calls?: ExampleCall[]
}

const folder = fileURLToPath(new URL('../golden/configurations', import.meta.url))

/** Reads all example configurations: documents of YAML files, one file for each topic. */
export function readConfigurations(): ExampleConfiguration[] {
  return globSync(`${folder}/*.yaml`)
    .sort()
    .flatMap((file) => {
      const topic = basename(file, '.yaml')
      return readFileSync(file, 'utf8')
        .split(/^---$/m)
        .map((text) => readDocument(topic, text))
    })
}

function readDocument(topic: string, text: string): ExampleConfiguration {
  const comments = [...text.matchAll(/^# (.*)$/gm)].map(([, comment = '']) => comment)
  const title = comments.find((comment) => !comment.startsWith('run: ')) ?? ''
  const run = comments.find((comment) => comment.startsWith('run: '))?.slice('run: '.length)
  const name = `${topic}: ${title}`
  return run === undefined ? { name, text } : { name, text, calls: run.split('; ').map(readCall) }
}

/** `POST /path {"body":1} -> 200 part of the response`. */
function readCall(text: string): ExampleCall {
  const match = /^([A-Z]+) (\S+)(?: (\{.*\}))? -> (\d+)(?: (.*))?$/.exec(text)
  if (match === null) throw new Error(`not a request: ${text}`)
  const [, method = '', path = '', body, status = '', contains] = match
  return {
    method,
    path,
    status: Number(status),
    ...(body === undefined ? {} : { body }),
    ...(contains === undefined ? {} : { contains }),
  }
}

/** A value for every environment variable of a configuration, unless given. */
export function environmentOf(text: string, given: Record<string, string>): Record<string, string> {
  const names = [...text.matchAll(/\$\{?([A-Z_]+)/g)].map(([, name = '']) => name)
  return { ...Object.fromEntries(names.map((name) => [name, `value-of-${name}`])), ...given }
}
