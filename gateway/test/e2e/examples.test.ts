import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority } from '../support/certificates.ts'
import { runTollgate } from '../support/gateway.ts'
import { printedLines } from '../support/printed-lines.ts'

// Configuration files that users copy: the examples and the blocks of the README.

const root = fileURLToPath(new URL('../../..', import.meta.url))
const examples = globSync('examples/*.yaml', { cwd: root }).sort()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-examples-'))
const blocks = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
  ([, text = ''], index) => ({ file: join(folder, `readme-${index + 1}.yaml`), text }),
)

/** Lines printed by the validation of each file; none for a valid file. */
let printed: Record<string, string[]> = {}

beforeAll(async () => {
  // The certificate of an authority is valid in every place.
  const { cert, key } = createAuthority()
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key)
  for (const { file, text } of blocks) writeFileSync(file, text)
  const inputs = [...examples.map((path) => join(root, path)), ...blocks.map(({ file }) => file)]
  printed = await printedLines(inputs.map((file) => [file, environmentOf(file)]))
})

afterAll(() => rmSync(folder, { recursive: true }))

describe('examples', () => {
  it.each(examples)('%s is valid', (example) => {
    expect(printed[join(root, example)]).toEqual([])
  })

  it('in the README are valid', () => {
    expect(blocks).not.toHaveLength(0)
    for (const { file } of blocks) expect(printed[file]).toEqual([])
  })

  it('validate with the command as well', async () => {
    const file = join(root, 'examples/quickstart.yaml')
    const result = await runTollgate(['--validate-only', '-f', file], { env: environmentOf(file) })
    expect(result).toEqual({ code: 0, stdout: 'Configuration is valid!\n', stderr: '' })
  })
})

/** A value for every variable that the file refers to. */
function environmentOf(file: string): Record<string, string> {
  const text = readFileSync(resolve(root, file), 'utf8')
  return Object.fromEntries([...text.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => [name, valueFor(name)]))
}

/**
 * Certificates and keys must be files that match; a key of 32 bytes or any text suits the other variables.
 */
function valueFor(name: string): string {
  if (name.endsWith('_ENCRYPTION_KEY') || name === 'SESSION_KEY' || name === 'OIDC_COOKIE_SECRET')
    return '0'.repeat(64)
  if (name.endsWith('_CERT_FILE')) return join(folder, 'cert.pem')
  if (name.endsWith('_KEY_FILE')) return join(folder, 'key.pem')
  if (name.endsWith('_REGION')) return 'us-east-1'
  return `dummy-${name}`
}
