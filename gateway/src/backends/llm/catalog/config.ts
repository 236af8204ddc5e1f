import {
  anyOfShapes,
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

const rateFields = {
  input: rate('Prompt tokens.'),
  output: rate('Output tokens.'),
  cacheRead: rate('Prompt tokens read from the provider’s cache. Default: `input`.'),
  cacheWrite: rate('Prompt tokens written to the provider’s cache. Default: `input`.'),
  reasoning: rate('Reasoning tokens. Default: `output`.'),
  inputAudio: rate('Audio tokens of the prompt. Default: `input`.'),
  outputAudio: rate('Audio tokens of the output. Default: `output`.'),
  inputImage: rate('Image tokens of the prompt, of models that count them separately. Default: `input`.'),
  outputImage: rate('Image tokens of the output. Default: `output`.'),
}

const rates = object(rateFields, {
  doc: 'Prices per million tokens in US dollars: decimal numbers in strings, with at most six decimals.',
})

const batchRates = object(rateFields, {
  doc: 'Prices of requests in batches, as `rates`. Without them batches cost `rates`, marked as an estimate.',
})

const perImageOf = object(
  {
    size: optional(name({ doc: 'Size of the image.', example: '1024x1024', default: 'any size' })),
    quality: optional(name({ doc: 'Quality of the image.', example: 'hd', default: 'any quality' })),
    price: string({ doc: 'Price of an image.', example: '0.08' }),
  },
  { doc: 'Price of images of a size and quality.' },
)

const unit = object(
  {
    perImage: rate('One generated image of a size and quality without a price in `images`.'),
    images: optional(list(perImageOf, { doc: 'Prices of images; the first that matches applies.' })),
    perMinute: rate('Minute of transcribed audio.'),
    perMillionCharacters: rate('Million characters of the text of speech.'),
    perThousandSearches: rate('Thousand searches: of rerankers, and of the web during other calls.'),
  },
  {
    doc: 'Prices by other units than tokens, in US dollars. They replace the prices of tokens for calls that have such units; searches of the web are added.',
  },
)

const model = object(
  {
    rates: optional(rates),
    batch: optional(batchRates),
    units: optional(unit),
    tiers: optional(
      list(
        object(
          {
            contextOver: integer(
              { doc: 'Prompt size in tokens above which these prices apply.' },
              { min: 0 },
            ),
            rates,
          },
          { doc: 'Prices for long prompts.' },
        ),
        { doc: 'Prices by prompt size, smallest first. Omitted prices default to those in `rates`.' },
      ),
    ),
    limits: optional(
      object(
        {
          contextWindow: optional(integer({ doc: 'Maximum prompt size in tokens.' }, { min: 1 })),
          maxOutputTokens: optional(integer({ doc: 'Maximum output in tokens.' }, { min: 1 })),
        },
        {
          doc: 'Limits of the model. The gateway does not enforce them; `contextFallback` of virtual models reads `contextWindow`.',
        },
      ),
    ),
    tags: optional(list(name({ doc: 'A tag.' }), { doc: 'Free-form tags of the model.' })),
  },
  { doc: 'Prices and limits of a model.' },
)

/** Prices and limits of models. */
export const catalogSchema = object(
  {
    providers: optional(
      map(
        object(
          { models: optional(map(model, { doc: 'Models by their name at the provider.' })) },
          { doc: 'Models of one provider.' },
        ),
        { doc: 'Providers by name.', example: { openai: { models: {} } } },
      ),
    ),
  },
  { doc: 'Prices and limits of models.' },
)

/** `config.modelCatalog`: later entries take precedence. */
export const modelCatalogSchema = list(
  exactlyOne(
    {
      file: filePath({ doc: 'Path of a catalog, JSON or YAML.' }),
      inline: anyOfShapes([catalogSchema, string({ doc: 'The text of a catalog, JSON or YAML.' })], {
        doc: 'A catalog, or its text.',
      }),
    },
    {},
    { doc: 'A catalog in a file or inline.' },
  ),
  {
    doc: 'Prices and limits of models. If several catalogs contain a model, the last one takes precedence, field by field.',
  },
)

export type Catalog = Infer<typeof catalogSchema>
export type CatalogModel = Infer<typeof model>
export type ModelCatalogConfig = Infer<typeof modelCatalogSchema>

/** Reports invalid prices and unordered tiers, with paths within the list. */
export function checkModelCatalog(catalogs: ModelCatalogConfig, report: ReportIssue): void {
  for (const [index, { inline }] of catalogs.entries()) {
    if (typeof inline === 'object')
      checkCatalog(inline, (path, message) => report([index, 'inline', ...path], message))
  }
}

/** `checkModelCatalog` for one catalog. */
export function checkCatalog({ providers = {} }: Catalog, report: ReportIssue): void {
  for (const [provider, { models = {} }] of Object.entries(providers)) {
    for (const [id, { rates: base, batch, units, tiers = [] }] of Object.entries(models)) {
      const path = ['providers', provider, 'models', id]
      checkRates(base, [...path, 'rates'], report)
      checkRates(batch, [...path, 'batch'], report)
      checkUnits(units, [...path, 'units'], report)
      let over = -1
      for (const [index, tier] of tiers.entries()) {
        checkRates(tier.rates, [...path, 'tiers', index, 'rates'], report)
        if (tier.contextOver <= over) {
          report([...path, 'tiers', index, 'contextOver'], 'must be greater than that of the previous tier')
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
  for (const [kind, price] of Object.entries(given ?? {})) checkPrice(price, [...path, kind], report)
}

function checkUnits(
  { images = [], ...prices }: NonNullable<CatalogModel['units']> = {},
  path: (string | number)[],
  report: ReportIssue,
): void {
  for (const [kind, price] of Object.entries(prices)) checkPrice(price, [...path, kind], report)
  for (const [index, { price }] of images.entries())
    checkPrice(price, [...path, 'images', index, 'price'], report)
}

function checkPrice(price: string | undefined, path: (string | number)[], report: ReportIssue): void {
  if (price === undefined || parsePrice(price) !== undefined) return
  report(path, 'must be a price such as 2.50: digits with at most six decimals')
}
