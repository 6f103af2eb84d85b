/** All forms of credentials: data. Those of development tools are here; credit and explanation in `secret-rule.ts`. */
import { alnum, base64, hex, randomRule, rule, type SecretRule, url, uuid } from './secret-rule.ts'
import { clouds, models } from './secret-rules-platforms.ts'
import { messaging, others } from './secret-rules-services.ts'

/** Code hosting, build and monitoring. */
const development: readonly SecretRule[] = [
  rule('GITHUB_TOKEN', 'gh[pousr]_', `${alnum}{36,251}`, 'ghp_{alnum 36}', 'github-pat'),
  rule(
    'GITHUB_TOKEN',
    'github_pat_',
    '[A-Za-z0-9_]{60,120}',
    'github_pat_{alnum 22}_{alnum 59}',
    'github-fine-grained-pat',
  ),
  rule(
    'GITLAB_TOKEN',
    'gl(?:pat|ptt|rt|rtr|dt|soat|cbt|ft|ffct|imt|agent|oas|wt)-',
    String.raw`${url}{20,300}(?:\.[0-9a-z]{2}(?:\.[0-9a-z]{9}|[0-9a-z]{7}))?`,
    'glpat-{url 27}.01.{lower 9}',
    'gitlab-pat',
  ),
  rule('GITLAB_TOKEN', 'GR1348941', `${url}{20}`, 'GR1348941{url 20}', 'gitlab-rrt'),
  rule('GITLAB_TOKEN', '_gitlab_session=', '[0-9a-z]{32}', '_gitlab_session={lower 32}', 'gitlab-session-cookie'),
  rule('NPM_TOKEN', 'npm_', `${alnum}{36}`, 'npm_{alnum 36}', 'npm-access-token'),
  rule('RUBYGEMS_TOKEN', 'rubygems_', `${hex}{48}`, 'rubygems_{hex 48}', 'rubygems-api-token'),
  rule('CLOJARS_TOKEN', 'CLOJARS_', '[A-Za-z0-9]{60}', 'CLOJARS_{lower 60}', 'clojars-api-token'),
  rule('DOCKER_TOKEN', 'dckr_(?:pat|oat)_', `${url}{27,60}`, 'dckr_pat_{url 27}'),
  rule('ARTIFACTORY_KEY', 'AKCp', `${alnum}{69}`, 'AKCp{alnum 69}', 'artifactory-api-key'),
  rule('ARTIFACTORY_KEY', 'cmVmd', `${alnum}{59}`, 'cmVmd{alnum 59}', 'artifactory-reference-token'),
  rule(
    'ATLASSIAN_TOKEN',
    'AT(?:ATT|CTT)3',
    String.raw`[A-Za-z0-9_\-=]{150,300}`,
    'ATATT3{url 186}',
    'atlassian-api-token',
  ),
  rule('BITBUCKET_PASSWORD', 'ATBB', `${alnum}{32}`, 'ATBB{alnum 32}'),
  rule('CIRCLECI_TOKEN', 'CCIPAT_', `${url}{40,90}`, 'CCIPAT_{alnum 22}_{hex 40}'),
  rule(
    'DOPPLER_TOKEN',
    String.raw`dp\.(?:pt|st|ct|sa|scim|audit)\.`,
    String.raw`[A-Za-z0-9_\-.]{40,80}`,
    'dp.pt.{alnum 43}',
    'doppler-api-token',
  ),
  rule('GRAFANA_TOKEN', 'glc_', `${base64}{32,400}={0,3}`, 'glc_{base64 120}', 'grafana-cloud-api-token'),
  rule('GRAFANA_TOKEN', 'glsa_', `${alnum}{32}_${hex}{8}`, 'glsa_{alnum 32}_{hex 8}', 'grafana-service-account-token'),
  rule('GRAFANA_TOKEN', 'eyJrIjoi', `${base64}{60,400}={0,3}`, 'eyJrIjoi{alnum 90}', 'grafana-api-key'),
  rule(
    'HARNESS_TOKEN',
    String.raw`[ps]at\.`,
    String.raw`${url}{22}\.${alnum}{24}\.${alnum}{20}`,
    'pat.{url 22}.{alnum 24}.{alnum 20}',
    'harness-api-key',
  ),
  rule('INFRACOST_KEY', 'ico-', `${alnum}{32}`, 'ico-{alnum 32}', 'infracost-api-token'),
  rule('LAUNCHDARKLY_KEY', '(?:sdk|api)-', uuid, 'sdk-{hex 8}-{hex 4}-{hex 4}-{hex 4}-{hex 12}'),
  rule('LINEAR_KEY', 'lin_(?:api|oauth)_', `${alnum}{40,64}`, 'lin_api_{alnum 40}', 'linear-api-key'),
  rule('NEW_RELIC_KEY', 'NRAK-', `${alnum}{27}`, 'NRAK-{ALNUM 27}', 'new-relic-user-api-key'),
  rule('NEW_RELIC_KEY', 'NRI[IQ]-', `${url}{32}`, 'NRII-{url 32}', 'new-relic-insert-key'),
  rule('NEW_RELIC_KEY', 'NRJS-', `${hex}{19}`, 'NRJS-{hex 19}', 'new-relic-browser-api-token'),
  rule('OCTOPUS_KEY', 'API-', '[A-Z0-9]{26}', 'API-{ALNUM 26}', 'octopus-deploy-api-key'),
  rule('POSTMAN_KEY', 'PMAK-', `${hex}{24}-${hex}{34}`, 'PMAK-{hex 24}-{hex 34}', 'postman-api-token'),
  rule('PREFECT_KEY', 'pnu_', `${alnum}{36}`, 'pnu_{alnum 36}', 'prefect-api-token'),
  rule('PULUMI_TOKEN', 'pul-', `${hex}{40}`, 'pul-{hex 40}', 'pulumi-api-token'),
  rule('README_KEY', 'rdme_', `${alnum}{70}`, 'rdme_{lower 70}', 'readme-api-token'),
  rule('SENTRY_TOKEN', 'sntryu_', `${hex}{64}`, 'sntryu_{hex 64}', 'sentry-user-token'),
  rule(
    'SENTRY_TOKEN',
    'sntrys_eyJ',
    '[A-Za-z0-9+/=_]{60,450}',
    'sntrys_eyJ{base64 120}_{base64 43}',
    'sentry-org-token',
  ),
  rule('SONAR_TOKEN', 'sq[upa]_', `${alnum}{40}`, 'squ_{hex 40}', 'sonar-api-token'),
  rule(
    'SOURCEGRAPH_TOKEN',
    `sgp_(?:(?:${hex}{16}|local)_)?`,
    `${hex}{40}`,
    'sgp_{hex 16}_{hex 40}',
    'sourcegraph-access-token',
  ),
  rule('VAULT_TOKEN', String.raw`hv[sbr]\.`, `${url}{24,300}`, 'hvs.{url 95}', 'vault-service-token'),
  randomRule('VAULT_TOKEN', String.raw`s\.`, `${alnum}{8}${alnum}{16}`, 's.{alnum 24}', 'vault-service-token'),
]

/** Names of issuers whose credentials have no form of their own; from the rules of gitleaks that ask for the name. */
export const issuerNames =
  'adafruit|adobe|airtable|algolia|alibaba|artifactory|asana|atlassian|azure|beamer|bintray|bitbucket|bittrex|cloudflare|codecov|cohere|coinbase|confluence|confluent|contentful|datadog|discord|droneci|dropbox|etsy|facebook|fastly|finicity|finnhub|flickr|freshbooks|gitter|heroku|hubspot|intercom|jfrog|jira|kraken|kucoin|launchdarkly|linear|linkedin|looker|mailgun|mattermost|meraki|message[_\\-]?bird|mistral|netlify|new[_\\-]?relic|nytimes|okta|plaid|private[_\\-]?ai|rapidapi|sendbird|sentry|snyk|sonar|sourcegraph|squarespace|sumo|telegram|travis|twitch|twitter|yandex|zendesk'

/** Names that announce a credential by themselves. Not every "token" does: page tokens lead through lists. */
export const credentialNames =
  '(?:api|access|auth|bearer|bot|client|deploy|encryption|master|personal|private|refresh|secret|service|session|signing|webhook)[_ .\\-]?(?:key|token|secret)|password|passwd|secret'

export const secretRules: readonly SecretRule[] = [...models, ...clouds, ...development, ...messaging, ...others]

/** Forms that begin with the variable part, so that any word may begin one. */
export const unprefixedRules: readonly SecretRule[] = [
  rule(
    'AZURE_KEY',
    String.raw`[A-Za-z0-9_~.]{3}\dQ~`,
    String.raw`[A-Za-z0-9_~.\-]{31,34}`,
    'abc8Q~{alnum 34}',
    'azure-ad-client-secret',
  ),
  rule(
    'TERRAFORM_TOKEN',
    String.raw`${alnum}{14}\.atlasv1\.`,
    String.raw`[A-Za-z0-9_\-=]{60,70}`,
    '{alnum 14}.atlasv1.{alnum 67}',
    'hashicorp-tf-api-token',
  ),
  rule(
    'DISCORD_TOKEN',
    '[MNO]',
    String.raw`[A-Za-z0-9_\-]{23,27}\.${url}{6}\.${url}{27,38}`,
    'M{alnum 23}.{alnum 6}.{alnum 38}',
  ),
  rule('MAILCHIMP_KEY', `${hex}{32}`, '-us[0-9]{1,2}', '{hex 32}-us20', 'mailchimp-api-key'),
  rule('TELEGRAM_TOKEN', String.raw`\d{5,16}:A`, `${url}{34}`, '{digit 10}:A{url 34}', 'telegram-bot-api-token'),
  rule('FACEBOOK_TOKEN', String.raw`\d{15,16}[|%]`, `${url}{27,40}`, '{digit 15}|{url 27}', 'facebook-access-token'),
  rule('MAXMIND_KEY', `${alnum}{6}_`, `${alnum}{29}_mmk`, '{alnum 6}_{alnum 29}_mmk', 'maxmind-license-key'),
]
