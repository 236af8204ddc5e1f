import type { CatalogSource } from '../../../api/llm/costs.ts'

/** Name and place of a catalog. */
export function sourceText({ source, file }: CatalogSource): string {
  switch (source) {
    case 'base':
      return 'Base catalog, imported'
    case 'custom':
      return 'Custom prices, edited here'
    case 'file':
      return `File ${file ?? ''}`
    case 'inline':
      return 'In the configuration file'
  }
}
