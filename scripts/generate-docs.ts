import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openApiParts } from '../gateway/src/admin/openapi-parts.ts'
import { renderConfigReference } from '../gateway/src/config/config-reference.ts'
import { configJsonSchema, configSchema } from '../gateway/src/config/schema.ts'
import { renderKubernetesReference } from '../gateway/src/kubernetes/crd/own-crds.ts'
import { deployFiles } from '../gateway/src/kubernetes/install/deploy-files.ts'
import { openApiDocument } from '../gateway/src/resources/api/openapi.ts'
import { renderKindsReference } from '../gateway/src/resources/kinds-reference.ts'
import { renderLlmCalls } from './llm-calls.ts'

// Generates the reference documentation of the schemas, and the files for Kubernetes. With --check it writes
// no file, and exits with 1 if a file differs from its schema.

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL('../gateway/package.json', import.meta.url), 'utf8'),
)

const generated: Record<string, () => string> = {
  'docs/reference/config.md': () => renderConfigReference(configSchema),
  'docs/reference/config.schema.json': () => `${JSON.stringify(configJsonSchema(), null, 2)}\n`,
  'docs/reference/resources.md': () => renderKindsReference(renderConfigReference(configSchema)),
  'docs/reference/openapi.json': () =>
    `${JSON.stringify(openApiDocument(configJsonSchema(), version, openApiParts), null, 1)}\n`,
  'docs/reference/llm-calls.md': renderLlmCalls,
  'docs/reference/kubernetes.md': renderKubernetesReference,
  ...deployFiles(version),
}

const checkOnly = process.argv.includes('--check')

for (const [path, render] of Object.entries(generated)) {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url))
  const text = render()
  if (text === contentOf(file)) continue
  if (checkOnly) {
    process.stderr.write(`${path} is not what the schemas say: run \`npm run docs\` and commit the result\n`)
    process.exitCode = 1
    continue
  }
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  process.stdout.write(`wrote ${path}\n`)
}

/** Line ends are as Git made them on this machine. */
function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').replaceAll('\r\n', '\n')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
