import {
  exactlyOne,
  filePath,
  type Infer,
  integer,
  list,
  map,
  name,
  object,
  optional,
  string,
} from '../../../schema/dsl.ts'
import type { ReportIssue } from '../../../schema/report.ts'
import { parsePrice } from './money.ts'

const rate = (doc: string) => optional(string({ doc, example: '2.50' }))

const rates = object(
  {
    input: rate('Tokens of the prompt.'),
    output: rate('Tokens of the answer.'),
    cacheRead: rate('Tokens of the prompt that the provider had cached; as input where it is left out.'),
    cacheWrite: rate(
      'Tokens of the prompt that the provider put into its cache; as input where it is left out.',
    ),
    reasoning: rate('Tokens the model thought with; as output where it is left out.'),
    inputAudio: rate('Audio tokens of the prompt; as input where it is left out.'),
    outputAudio: rate('Audio tokens of the answer; as output where it is left out.'),
  },
  { doc: 'Prices of a million tokens, in US dollars: decimal numbers as text, with at most six decimals.' },
)

const model = object(
  {
    rates: optional(rates),
    tiers: optional(
      list(
        object(
          {
            contextOver: integer({ doc: 'Tokens of a prompt above which these prices hold.' }, { min: 0 }),
            rates,
          },
          { doc: 'Other prices for long prompts.' },
        ),
        { doc: 'Prices by length of the prompt, the shortest first; what they leave out is as in `rates`.' },
      ),
    ),
    limits: optional(
      object(
        {
          contextWindow: optional(integer({ doc: 'Longest prompt, in tokens.' }, { min: 1 })),
          maxOutputTokens: optional(integer({ doc: 'Longest answer, in tokens.' }, { min: 1 })),
        },
        {
          doc: 'Limits of the model, for people and tools that read the catalog: nothing holds requests to them.',
        },
      ),
    ),
    tags: optional(list(name({ doc: 'A tag.' }), { doc: 'Words of your own about the model.' })),
  },
  { doc: 'What is known about a model.' },
)

/** Prices and limits of models. */
export const catalogSchema = object(
  {
    providers: optional(
      map(
        object(
          { models: optional(map(model, { doc: 'Models by the name the provider knows them by.' })) },
          { doc: 'Models of one provider.' },
        ),
        { doc: 'Providers by name.', example: { openai: { models: {} } } },
      ),
    ),
  },
  { doc: 'Prices and limits of models.' },
)

/** `config.modelCatalog`: later entries count before earlier ones. */
export const modelCatalogSchema = list(
  exactlyOne(
    { file: filePath({ doc: 'Path of a catalog, JSON or YAML.' }), inline: catalogSchema },
    {},
    { doc: 'A catalog, in a file or in place.' },
  ),
  { doc: 'Prices and limits of models. Where several name a model, the last one counts, field by field.' },
)

export type Catalog = Infer<typeof catalogSchema>
export type CatalogModel = Infer<typeof model>
export type ModelCatalogConfig = Infer<typeof modelCatalogSchema>

/** Reports prices that are none and tiers out of order, with paths inside the list. */
export function checkModelCatalog(catalogs: ModelCatalogConfig, report: ReportIssue): void {
  for (const [index, { inline }] of catalogs.entries()) {
    if (inline !== undefined)
      checkCatalog(inline, (path, message) => report([index, 'inline', ...path], message))
  }
}

/** The same for one catalog. */
export function checkCatalog({ providers = {} }: Catalog, report: ReportIssue): void {
  for (const [provider, { models = {} }] of Object.entries(providers)) {
    for (const [id, { rates: base, tiers = [] }] of Object.entries(models)) {
      const path = ['providers', provider, 'models', id]
      checkRates(base, [...path, 'rates'], report)
      let over = -1
      for (const [index, tier] of tiers.entries()) {
        checkRates(tier.rates, [...path, 'tiers', index, 'rates'], report)
        if (tier.contextOver <= over) {
          report([...path, 'tiers', index, 'contextOver'], 'must be more than that of the tier before it')
        }
        over = tier.contextOver
      }
    }
  }
}

function checkRates(
  given: Infer<typeof rates> | undefined,
  path: (string | number)[],
  report: ReportIssue,
): void {
  for (const [kind, price] of Object.entries(given ?? {})) {
    if (price === undefined || parsePrice(price) !== undefined) continue
    report([...path, kind], 'expected a price such as 2.50: digits, and at most six decimals')
  }
}
