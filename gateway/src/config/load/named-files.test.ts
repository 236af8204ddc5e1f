import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createAuthority } from '../../../test/support/certificates.ts'
import { formatPath } from '../../schema/path.ts'
import type { Config } from '../schema.ts'
import { checkNamedFiles } from './named-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-named-files-'))
afterAll(() => rmSync(folder, { recursive: true }))

const authority = createAuthority()
const [one, other] = [authority.issue('a.test'), authority.issue('b.test')]
const files = {
  cert: write('cert.pem', one.cert),
  key: write('key.pem', one.key),
  otherKey: write('other.pem', other.key),
  text: write('text', 'two words'),
}

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function problems(config: Config): string[] {
  const found: string[] = []
  checkNamedFiles(config, (path, message) => found.push(`${formatPath(path)}: ${message}`))
  return found
}

const routesWith = (tls: object): Config => ({
  binds: [{ port: 1, listeners: [{ tls, routes: [] }] }],
})

it('accepts files with valid content', () => {
  expect(problems(routesWith({ cert: files.cert, key: files.key, root: files.cert }))).toEqual([])
})

it('reports missing files, directories and other content at the path of the name', () => {
  const config = {
    ...routesWith({ cert: files.key, key: files.cert, root: join(folder, 'none') }),
    llm: { models: [{ name: 'a', provider: 'openai', params: { apiKey: { file: files.text } } }] },
    config: { modelCatalog: [{ file: folder }] },
  }
  expect(problems(config)).toEqual([
    `binds[0].listeners[0].tls.cert: ${files.key} contains no certificate in PEM format`,
    `binds[0].listeners[0].tls.key: ${files.cert} contains no private key in PEM format`,
    `binds[0].listeners[0].tls.root: ${folder}/none cannot be read: there is no such file`,
    `llm.models[0].params.apiKey.file: ${files.text} does not contain a credential: printable ASCII on one line`,
    `config.modelCatalog[0].file: ${folder} cannot be read: it is a directory`,
  ])
})

it('reports a certificate with the key of another one', () => {
  expect(problems(routesWith({ cert: files.cert, key: files.otherKey }))).toEqual([
    'binds[0].listeners[0].tls: key: is not the key of the certificate',
  ])
})

it('checks inline texts like files, without quoting them', () => {
  const inline = (text: string) => ({ inline: text })
  const good = { cert: inline(one.cert), key: inline(one.key), root: inline(authority.cert) }
  expect(problems(routesWith(good))).toEqual([])
  expect(problems(routesWith({ ...good, key: files.key }))).toEqual([])
  expect(problems(routesWith({ cert: inline(one.key), key: inline(one.cert) }))).toEqual([
    'binds[0].listeners[0].tls.cert.inline: contains no certificate in PEM format',
    'binds[0].listeners[0].tls.key.inline: contains no private key in PEM format',
  ])
  expect(problems(routesWith({ ...good, key: inline(other.key) }))).toEqual([
    'binds[0].listeners[0].tls: key: is not the key of the certificate',
  ])
})
