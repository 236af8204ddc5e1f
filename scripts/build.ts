import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { billOfMaterials, bundledPackages, licenseTexts } from './bill-of-materials.ts'
import { buildUi } from './build-ui.ts'
import { bundleGateway } from './bundle.ts'

// `npm run build`: bundles the gateway with its libraries, one file per entry point, builds its console, and
// packs the publishable package, which installs without a network. Writes the package to dist/, or to the
// folder of --out.

const { values } = parseArgs({ options: { out: { type: 'string', default: 'dist' } } })
const root = fileURLToPath(new URL('..', import.meta.url))
process.chdir(root)

const metafile = await bundleGateway('gateway/dist')
const uiModules = await buildUi(join(root, 'gateway/dist/ui'))
const packages = bundledPackages([...Object.keys(metafile.inputs), ...uiModules])
const { version } = JSON.parse(readFileSync('gateway/package.json', 'utf8'))
writeFileSync('gateway/dist/third-party-licenses.txt', licenseTexts(packages))
writeFileSync(
  'gateway/dist/sbom.cdx.json',
  `${JSON.stringify(billOfMaterials(packages, version), null, 2)}\n`,
)
for (const file of ['README.md', 'LICENSE']) cpSync(file, `gateway/${file}`)

mkdirSync(values.out, { recursive: true })
const packed = execFileSync(
  'npm',
  ['pack', './gateway', '--json', '--ignore-scripts', '--pack-destination', values.out],
  {
    encoding: 'utf8',
    shell: process.platform === 'win32',
  },
)
process.stdout.write(`${values.out}/${packedName(JSON.parse(packed))}\n`)

/** The output of npm is a list of packages; from version 12 on, an object of packages by name. */
function packedName(output: unknown): string {
  if (typeof output === 'object' && output !== null) {
    for (const entry of Object.values(output)) {
      if (typeof entry === 'object' && entry !== null && 'filename' in entry) return String(entry.filename)
    }
  }
  throw new Error(`unexpected output of npm pack: ${JSON.stringify(output)}`)
}
