import { readFileSync } from 'node:fs'

/** Outcomes by row and column. */
type Table = Record<string, Record<string, string>>

/** Outcomes that `gateway/test/e2e/llm-matrix.test.ts` records. */
type Recording = { calls: Table; features: Record<string, Table>; errors: Record<string, Table> }

/** Calls, features and errors of clients by provider, as Markdown, from the recorded outcomes. */
export function renderLlmCalls(): string {
  const file = new URL('../gateway/test/golden/llm-calls.json', import.meta.url)
  const { calls, features, errors }: Recording = JSON.parse(readFileSync(file, 'utf8'))
  return `# Calls by provider

Generated from the outcomes of tests, in which one gateway serves every call and feature with doubles of all providers
(\`gateway/test/e2e/llm-matrix.test.ts\`). A test fails if an outcome differs from this page.

| Cell | Meaning |
|---|---|
| native | sent in the API of the client |
| → name | translated to that API of the provider |
| gateway | answered by the gateway |
| estimate | likewise, marked as an estimate |
| status and code | refused with that error |
| empty | refused with 400 \`unsupported_endpoint\`, and the names of providers that have the call |

Columns are values of \`llm.api\`. Files are those of batches, whose requests are chat completions: models without these accept the files of
[batches](../batches.md) with requests to other calls.

${renderTable('Provider', calls)}

## Features

In a translation, the request arrives complete at the provider, and the response complete at the client: texts, calls, results, reasoning
and token counts are compared. "without" names parts that the API of the provider does not have, and that are omitted: cache markers, where the provider
caches prompts by itself. Features that the API of the client does not have are marked with a dash. Status and code: the API of the provider does not have
the feature, and an answer without it would differ.

${renderTables(features)}

## Errors

Each double fails as its vendor does. The status is the vendor's; code (of Anthropic's API: type) and message have the shape of the client's API,
"retry after" is the header. Status 200 is followed by the finish reason, "stream" by the code of the event that ends the stream. A dash marks
failures that the vendor does not report.

${renderTables(errors)}
`
}

function renderTables(tables: Record<string, Table>): string {
  return Object.entries(tables)
    .map(([api, table]) => `### Clients of \`${api}\`\n\n${renderTable('Provider', table)}`)
    .join('\n\n')
}

function renderTable(corner: string, table: Table): string {
  const columns = [...new Set(Object.values(table).flatMap((cells) => Object.keys(cells)))]
  const rows = Object.entries(table).map(
    ([row, cells]) => `| ${row} | ${columns.map((column) => renderCell(cells[column])).join(' | ')} |`,
  )
  return [`| ${corner} | ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length + 1)}`, ...rows].join(
    '\n',
  )
}

function renderCell(cell: string | undefined): string {
  if (cell === undefined || cell === '') return '–'
  return cell === '400 unsupported_endpoint' ? '' : cell
}
